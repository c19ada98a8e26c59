#include "sched/worker.hpp"

#include <algorithm>

#include "troupe/base/invariant.hpp"

namespace troupe::sched {

void worker::forget(runnable& item) noexcept {
  if (item.linger_slot < 0) return;
  TROUPE_INVARIANT(ring_[static_cast<unsigned>(item.linger_slot)] == &item, "W1");
  ring_[static_cast<unsigned>(item.linger_slot)] = nullptr;
  item.linger_slot = -1;
  --used_;
}

// Out of the ring already. Either it goes dormant (and may be freed by that), or it is queued.
void worker::settle_or_queue(runnable& item) noexcept {
  if (item.where != place::lingering) return;
  if (!item.type->settle(item)) push(item);
}

void worker::enter_ring(runnable& item) noexcept {
  if (!lingering_pays_) return settle_or_queue(item);
  ++entered_;
  runnable* before = ring_[hand_];
  if (before != nullptr) {
    forget(*before);
    settle_or_queue(*before);
  }
  ring_[hand_] = &item;
  item.linger_slot = static_cast<std::int16_t>(hand_);
  ++used_;
  hand_ = (hand_ + 1) % ring_size;
}

void worker::judge_lingering() noexcept {
  ++phase_;
  if (phase_ == trial_length / 2) entered_ = 0;
  if (phase_ == trial_length) lingering_pays_ = entered_ < ring_size;  // of 8 × 64 turns
  if (phase_ == trial_length + verdict_length) {
    phase_ = 0;
    lingering_pays_ = true;
  }
}

void worker::look_at_ring(unsigned slots) noexcept {
  if (used_ == 0) return;
  for (; slots > 0; --slots) {
    look_ = (look_ + 1) % ring_size;
    runnable* item = ring_[look_];
    if (item != nullptr && item->where == place::lingering && item->type->pending(*item)) push(*item);
  }
}

void worker::settle_all() noexcept {
  for (unsigned slot = 0; used_ > 0; ++slot) {
    runnable* item = ring_[slot];
    if (item == nullptr) continue;
    forget(*item);
    settle_or_queue(*item);
  }
  hand_ = 0;
}

// What has waited longest goes first; mail for lingering runnables counts as waiting.
unsigned worker::give(worker& thief, runnable*& list, unsigned at_most) noexcept {
  unsigned given = 0;
  runnable** end = &list;
  const auto move = [&](runnable& item) {
    forget(item);
    item.where = place::elsewhere;
    // order: relaxed  read inside a lock only; this worker's is revoked, the thief's is its own
    item.home.store(&thief, std::memory_order_relaxed);
    item.next = nullptr;
    *end = &item;
    end = &item.next;
    ++given;
  };
  for (const unsigned half = static_cast<unsigned>((queue.count() + 1) / 2); given < std::min(half, at_most);) {
    move(*queue.pop());
  }
  for (unsigned slot = 0; slot < ring_size && used_ > 0 && given < at_most; ++slot) {
    runnable* item = ring_[slot];
    if (item != nullptr && item->where == place::lingering && item->type->pending(*item)) move(*item);
  }
  return given;
}

}  // namespace troupe::sched
