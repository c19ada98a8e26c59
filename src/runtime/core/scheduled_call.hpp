// scheduled_call: the entry that after() and every() give to the timers.
//
// A call is in one of three states: armed, on its way, or done. It travels to a worker as a posted
// procedure, or to the actor in whose handler it was made as a message.
// The thread that takes it out of the timers, because it is due or to cancel it, owns it:
// the procedure and the period therefore need no lock. A call that begins and a cancel both change
// `step_`, and one of them comes first. A thread that arms the call again reads `step_` once more
// after arming, and a cancel looks for the call among the armed ones after its change: one of the
// two finds the other, since both pass the timers' lock.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>

#include "runtime/core/runtime_core.hpp"
#include "sched/runnable.hpp"
#include "troupe/base/unique_function.hpp"
#include "troupe/memory/block_pool.hpp"
#include "troupe/task/timer.hpp"

namespace troupe {

struct scheduled_call final : tasks::timer {
  // `again` zero: once. Owns a ref to the actor `to`, whose turns the calls are; null: the calls
  // are procedures of the pool. Throws std::bad_alloc, and then owns nothing.
  scheduled_call(runtime_core& core, unique_function<void()>&& calls,
                 std::chrono::nanoseconds again, const timer_options& options, void* to);
  ~scheduled_call();

  static void* operator new(std::size_t bytes) { return memory::allocate(bytes); }
  static void operator delete(void* call, std::size_t bytes) noexcept {
    memory::deallocate(call, bytes);
  }

  // Arms it; the caller keeps a ref. Throws std::system_error.
  void start(std::chrono::nanoseconds span, const std::stop_token& stop);
  bool cancel() noexcept;
  void drop_ref() noexcept;

 private:
  // Travels with the call to a worker and through it, and continues the call however that ends.
  struct firing {
    explicit firing(scheduled_call& fired) noexcept : fired(&fired) {}
    firing(firing&& other) noexcept : fired(std::exchange(other.fired, nullptr)) {}
    firing& operator=(firing&&) = delete;
    ~firing() {
      if (fired != nullptr) fired->go_on();
    }
    void operator()() { fired->call(); }
    scheduled_call* fired;
  };
  // The firing as a posted procedure.
  struct posted final : sched::runnable {
    explicit posted(scheduled_call& fired) noexcept : due(fired) {}
    static sched::after_turn run(sched::runnable& item);
    static void dispose(sched::runnable& item) noexcept;
    static const sched::runnable_vtable vtable;
    firing due;
  };
  // The firing as a message to an actor.
  struct turn final : sched::message {
    explicit turn(scheduled_call& fired) noexcept : message(&act_on), due(fired) {}
    static const char* act_on(sched::message*, void*, sched::message_act);
    firing due;
  };
  struct on_stop {
    scheduled_call& call;
    void operator()() const noexcept { call.cancel(); }
  };

  static void on_time(timer& self) noexcept;
  // The due call as a procedure of the pool. Throws std::bad_alloc.
  static sched::runnable& make_posted(scheduled_call& fired);
  void send_turn();
  void* actor() const noexcept { return rare_ == nullptr ? nullptr : rare_->to; }
  void call();
  void go_on() noexcept;
  void end() noexcept;
  // With fewer moves than an assignment of nullptr.
  void drop_procedure() noexcept { const unique_function<void()> dropped(std::move(procedure_)); }
  bool is_periodic() const noexcept {
    return rare_ != nullptr && rare_->period != std::chrono::nanoseconds::zero();
  }

  // The members that only few calls need, kept apart so that a million calls take less memory.
  struct rare {
    const std::chrono::nanoseconds period;  // zero: once
    void* const to;
    std::chrono::nanoseconds due{};
    std::optional<std::stop_callback<on_stop>> stop;
  };
  // Apart, so that no other call saves registers for it.
  struct rare_deleter {
    void operator()(rare* old) const noexcept;
  };
  using rare_part = std::unique_ptr<rare, rare_deleter>;
  static rare_part make_rare(std::chrono::nanoseconds again, void* to);
  void start_rare(std::int64_t due_ns, const std::stop_token& stop);

  const std::shared_ptr<runtime_core> core_;
  unique_function<void()> procedure_;
  const rare_part rare_;
  std::atomic<std::uint32_t> refs_{2};  // the timer's own ref, and the handle's
  enum class step : std::uint8_t { waits, runs, cancelled };
  std::atomic<step> step_{step::waits};
};

}  // namespace troupe
