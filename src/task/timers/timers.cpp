#include "task/timers/timers.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/mix_bits.hpp"
#include "base/thread_name.hpp"

namespace troupe::tasks {

namespace {

std::atomic<unsigned> chosen_wheels{0};

std::int64_t time_of(std::int64_t tick) noexcept {
  return tick > INT64_MAX / wheel::tick_ns ? INT64_MAX : tick * wheel::tick_ns;
}

unsigned wheels_for(unsigned workers) noexcept {
  constexpr unsigned with_one_wheel_max = 16, workers_a_wheel = 8;
  // order: relaxed  a test sets it before there are timers
  if (const unsigned chosen = chosen_wheels.load(std::memory_order_relaxed)) return chosen;
  if (workers <= with_one_wheel_max) return 1;
  return (workers + workers_a_wheel - 1) / workers_a_wheel;
}

}  // namespace

// order: relaxed  as above
void timers::set_wheels(unsigned number) noexcept {
  chosen_wheels.store(number, std::memory_order_relaxed);
}

timers::timers(sched::runtime_host& host, time_kept_by keeper, unsigned workers)
    : number_(keeper == time_kept_by::own_thread ? wheels_for(workers) : 1),
      wheels_(new guarded_wheel[number_]),
      has_begun_(keeper != time_kept_by::own_thread),
      keeper_(keeper),
      runtime_(host) {
  for (unsigned i = 0; i < number_; ++i) wheels_[i].serve(host, keeper != time_kept_by::simulation);
}

timers::~timers() { shut_down(); }

unsigned timers::place_of(const timer& entry) const noexcept {
  return base::part_of(reinterpret_cast<std::uintptr_t>(&entry), number_);
}

void timers::begin() {
  std::lock_guard lock(beginning_);
  // order: relaxed (all)  inside the lock
  if (has_begun_.load(std::memory_order_relaxed)) return;
  if (!ending_.load(std::memory_order_relaxed)) thread_ = std::thread([this] { keep_time(); });
  has_begun_.store(true, std::memory_order_relaxed);
}

void timers::shut_down() {
  {
    std::lock_guard lock(beginning_);
    // order: release  with the acquires of the thread
    ending_.store(true, std::memory_order_release);
  }
  wakes_.notify();
  if (thread_.joinable()) thread_.join();
}

void timers::expire_soon() noexcept {
  if (pool_ != nullptr) {
    pool_->expire_soon();
  } else {
    wakes_.notify();
  }
}

std::int64_t timers::expire_due() noexcept {
  // order: acquire  shut_down() has released it
  if (ending_.load(std::memory_order_acquire)) return INT64_MAX;
  return time_of(expire_wheels());
}

std::int64_t timers::expire_wheels() {
  std::int64_t next = wheel::never;
  for (unsigned i = 0; i < number_; ++i) next = std::min(next, wheels_[i].expire());
  return next;
}

void timers::keep_time() {
  base::name_this_thread("timers");
  // order: acquire (all)  shut_down() has released it
  while (!ending_.load(std::memory_order_acquire)) {
    const std::int64_t next = expire_wheels();
    if (ending_.load(std::memory_order_acquire)) return;
    if (next == wheel::never) {
      wakes_.wait();
    } else {
      const auto span =
          std::chrono::nanoseconds(std::max<std::int64_t>(next * wheel::tick_ns - now_ns(), 0));
      static_cast<void>(
          wakes_.wait_for(std::min<std::chrono::nanoseconds>(span, std::chrono::hours(1))));
    }
  }
}

std::optional<std::int64_t> timers::next_ns() {
  std::int64_t next = wheel::never;
  for (unsigned i = 0; i < number_; ++i) next = std::min(next, wheels_[i].next_tick());
  if (next == wheel::never) return std::nullopt;
  return time_of(next);
}

void timers::expire() { static_cast<void>(expire_wheels()); }

// A function that expires may arm a timer of another wheel.
void timers::expire_all() {
  for (bool more = true; more;) {
    more = false;
    for (unsigned i = 0; i < number_; ++i) more = wheels_[i].expire_all() || more;
  }
}

timer_counts timers::count(const timer* but) {
  timer_counts sum;
  for (unsigned i = 0; i < number_; ++i) {
    const bool is_here = but != nullptr && &wheel_of(*but) == &wheels_[i];
    const timer_counts part = wheels_[i].count(is_here ? but : nullptr);
    sum.armed += part.armed;
    sum.strong += part.strong;
    sum.holds += part.holds;
  }
  return sum;
}

void timers::count_sources() noexcept {
  for (unsigned i = 0; i < number_; ++i) wheels_[i].count_sources();
}

source_counts timers::count_by_source() {
  source_counts sums{};
  for (unsigned i = 0; i < number_; ++i) wheels_[i].add_sources(sums);
  return sums;
}

observe::value_counts timers::count_lateness() {
  observe::value_counts sums;
  for (unsigned i = 0; i < number_; ++i) wheels_[i].add_lateness(sums);
  return sums;
}

}  // namespace troupe::tasks
