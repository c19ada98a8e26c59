// scheduled_call: what after() and every() leave with the timers.
//
// It is in one of three places: armed, on its way to a worker as a posted procedure, or done. Who
// takes it out of the timers, by its time or by a cancel, has it; so procedure and period need no
// lock. A call that begins and a cancel change `step_`, and one of them comes first. Whoever arms
// it again looks at that once more behind the arming, and a cancel looks for it among the armed
// ones behind its change: one of the two finds the other, since both pass the timers' lock.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "runtime/runtime_core.hpp"
#include "troupe/memory/block_pool.hpp"
#include "troupe/task/timer.hpp"

namespace troupe {

struct scheduled_call final : tasks::timer {
  // `again`: zero for once. Throws std::bad_alloc.
  scheduled_call(std::shared_ptr<runtime_core> in, std::move_only_function<void()> calls,
                 std::chrono::nanoseconds again, const timer_options& options);

  static void* operator new(std::size_t bytes) { return memory::allocate(bytes); }
  static void operator delete(void* call, std::size_t bytes) noexcept {
    memory::deallocate(call, bytes);
  }

  // Arms it; the caller keeps a ref. Throws std::system_error.
  void start(std::chrono::nanoseconds span, const std::stop_token& stop);
  bool cancel() noexcept;
  void drop_ref() noexcept;

 private:
  // The way of a call to a worker and through it, however that ends.
  struct firing {
    explicit firing(scheduled_call& fired) noexcept : of(&fired) {}
    firing(firing&& other) noexcept : of(std::exchange(other.of, nullptr)) {}
    firing& operator=(firing&&) = delete;
    ~firing() {
      if (of != nullptr) of->go_on();
    }
    void operator()() { of->call(); }
    scheduled_call* of;
  };
  struct on_stop {
    scheduled_call& of;
    void operator()() const noexcept { of.cancel(); }
  };

  static void on_time(timer& self) noexcept;
  void call();
  void go_on() noexcept;
  void end() noexcept;
  bool is_periodic() const noexcept {
    return rare_ != nullptr && rare_->period != std::chrono::nanoseconds::zero();
  }

  // What few calls have: so a million of them take less memory.
  struct rare {
    const std::chrono::nanoseconds period;  // zero: once
    std::chrono::nanoseconds due{};
    std::optional<std::stop_callback<on_stop>> stop;
  };

  const std::shared_ptr<runtime_core> core_;
  std::move_only_function<void()> procedure_;
  const std::unique_ptr<rare> rare_;
  std::atomic<std::uint32_t> refs_{2};  // the timer's own, and the handle's
  enum class step : std::uint8_t { waits, runs, cancelled };
  std::atomic<step> step_{step::waits};
};

}  // namespace troupe
