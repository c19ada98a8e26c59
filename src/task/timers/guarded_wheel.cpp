#include "task/timers/guarded_wheel.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "troupe/observe/trace.hpp"

namespace troupe::tasks {

void guarded_wheel::await_end(const timer& entry, held& lock) noexcept {
  ++awaiting_end_;
  while (expiring_ == &entry) {
    // order: relaxed  changed under the mutex; the kernel compares it once more
    const std::uint32_t seen = ends_.load(std::memory_order_relaxed);
    lock.unlock();
    base::kernel_futex::wait(ends_, seen, nullptr);
    lock.lock();
  }
  --awaiting_end_;
}

// The timer's function runs outside of the lock.
void guarded_wheel::expire_one(timer& entry, held& lock) {
  expiring_ = &entry;
  const bool weak = entry.weak;
  count(entry, &source_count::expired);
  if (counts_sources_) [[unlikely]] {
    const std::int64_t late_ns =
        std::max<std::int64_t>(runtime_->now_ns() - entry.due_tick * wheel::tick_ns, 0);
    late_ns_.add(observe::value_counts::bucket_of(static_cast<std::uint64_t>(late_ns)), 1);
  }
  lock.unlock();
  observe::trace(observe::event::timer, nullptr);
  entry.expired(entry);
  lock = turns_.enter(mutex_);
  expiring_ = nullptr;
  if (awaiting_end_ != 0) [[unlikely]] {
    // order: relaxed  under the mutex, which the threads take before they look again
    ends_.fetch_add(1, std::memory_order_relaxed);
    for (unsigned i = 0; i < awaiting_end_; ++i) base::kernel_futex::wake_one(ends_);
  }
  // The timer is counted until here: the work that it woke is counted itself by now.
  if (!weak && --armed_ == 0) runtime_->release();
}

std::int64_t guarded_wheel::expire() {
  auto lock = turns_.enter(mutex_);
  looks_by_ = 0;
  wheel_.advance(runtime_->now_ns() / wheel::tick_ns);
  while (timer* entry = wheel_.take_due()) expire_one(*entry, lock);
  const std::int64_t next = wheel_.next_tick();
  if (has_thread_) looks_by_ = next;
  return next;
}

bool guarded_wheel::expire_all() {
  bool any = false;
  std::unique_lock lock(mutex_);
  for (; timer* entry = wheel_.take_any(); any = true) expire_one(*entry, lock);
  return any;
}

std::int64_t guarded_wheel::next_tick() {
  std::lock_guard lock(mutex_);
  return wheel_.next_tick();
}

timer_counts guarded_wheel::count(const timer* but) {
  std::lock_guard lock(mutex_);
  const bool left_out = but != nullptr && but->is == timer::state::armed;
  return {wheel_.count() - (left_out ? 1 : 0), armed_, armed_ != 0 ? 1 : 0};
}

void guarded_wheel::add_sources(source_counts& sums) {
  std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < timer_sources; ++i) {
    sums[i].armed += by_source_[i].armed;
    sums[i].expired += by_source_[i].expired;
    sums[i].cancelled += by_source_[i].cancelled;
  }
}

void guarded_wheel::add_lateness(observe::value_counts& sums) {
  std::lock_guard lock(mutex_);
  sums.add(late_ns_);
}

// Whether the thread waits for the lock, or soon will, for this wheel's sake.
bool guarded_wheel::is_thread_due() const noexcept {
  return has_thread_ && looks_by_ <= runtime_->now_ns() / wheel::tick_ns;
}

// The thread may have been woken without having asked for the lock yet: the pause lets it in.
void guarded_wheel::let_in(bool is_due) const noexcept {
  turns_.let_in();
  // sleeps: a woken thread does not show that it waits until it asks for the lock
  if (is_due) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

}  // namespace troupe::tasks
