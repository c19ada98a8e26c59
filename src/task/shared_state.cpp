#include "troupe/task/shared_state.hpp"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "task/one_shot.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::tasks {

constinit std::mutex parents;

namespace {

using shot = one_shot<observer, std::atomic<std::uintptr_t>>;

struct blocked : observer {
  blocked() noexcept : observer{[](observer& self) noexcept { static_cast<blocked&>(self).tell(); }} {}
  void tell() noexcept {
    std::lock_guard lock(mutex);
    told = true;
    changed.notify_one();
  }
  std::mutex mutex;
  std::condition_variable changed;
  bool told = false;
};

}  // namespace

bool shared_state::resolved() const noexcept { return shot(const_cast<std::atomic<std::uintptr_t>&>(word)).resolved(); }
bool shared_state::attach(observer& waiting) noexcept { return shot(word).attach(waiting); }
bool shared_state::detach(observer& waiting) noexcept { return shot(word).detach(waiting); }

void shared_state::take() noexcept { shot(word).take(); }
bool shared_state::left() const noexcept { return shot(const_cast<std::atomic<std::uintptr_t>&>(word)).left(); }

void shared_state::resolve() noexcept {
  const auto [waiting, last] = shot(word).resolve();
  if (waiting != nullptr) {
    waiting->resolved(*waiting);
  } else if (last) {
    be_done();
  }
}

void shared_state::leave() noexcept {
  if (shot(word).leave()) be_done();
}

namespace {

TROUPE_NOINLINE void forget_parent(ask_link& of) noexcept {
  shared_state* parent = nullptr;
  {
    std::lock_guard lock(parents);
    parent = std::exchange(of.parent, nullptr);
  }
  parent->drop_ref();
}

}  // namespace

void shared_state::be_done() noexcept {
  // order: acquire  as drop_ref; nobody makes this one a parent any more
  if (asked != nullptr && asked->parent != nullptr && refs.load(std::memory_order_acquire) != 1) [[unlikely]] forget_parent(*asked);
  drop_ref();
}

// order: relaxed  the caller has a ref already
void shared_state::add_ref() noexcept { refs.fetch_add(1, std::memory_order_relaxed); }

void shared_state::drop_ref() noexcept {
  // order: acquire  the only one left: sees what the others did
  if (refs.load(std::memory_order_acquire) != 1) {
    // order: acq_rel  what its holder did is seen by the one that frees it; pairs with itself
    if (refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  }
  free(*this);
}

bool shared_state::wait(std::chrono::nanoseconds at_most) {
  blocked here;
  if (!attach(here)) return true;
  std::unique_lock lock(here.mutex);
  if (at_most == std::chrono::nanoseconds::max()) {
    here.changed.wait(lock, [&] { return here.told; });
    return true;
  }
  if (here.changed.wait_for(lock, at_most, [&] { return here.told; })) return true;
  lock.unlock();
  if (detach(here)) return false;
  lock.lock();  // it is just being told
  here.changed.wait(lock, [&] { return here.told; });
  return true;
}

}  // namespace troupe::tasks
