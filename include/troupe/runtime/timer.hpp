// timer: a call that is due later; the return value of after() and every().
#pragma once

#include "troupe/base/language.hpp"

#include <optional>
#include <stop_token>
#include <utility>

#include "troupe/context/context.hpp"

namespace troupe {

struct scheduled_call;

// The texts of the compile errors of after() and every().
#define TROUPE_REFUSES_COROUTINE_OF(name) \
  "troupe: " name ": this is a coroutine, which would never run: let the procedure spawn its task"
#define TROUPE_TIMER_REFUSES(name)                                                           \
  "troupe: " name                                                                            \
  ": it takes a time with its unit, as std::chrono::milliseconds(100), and a callable that " \
  "takes no arguments and can be moved"

// Options of after() and every().
struct timer_options {
  // Ends the timer; a running call is not interrupted. Default: never.
  std::stop_token stop{};
  // True: the timer does not keep the program alive. Default false.
  bool weak = false;
  // A heap for each call, which this_context() returns in it. It is freed when the call has ended;
  // if the call has failed, when run() has thrown another failure after this one. Default: none.
  std::optional<context_options> context{};
};

// Can cancel a call that is due later. A timer object that is dropped cancels nothing. Move-only.
// Thread: any, one at a time. Lifetime: it may outlive its runtime.
//
// Example:
//     troupe::runtime rt;
//     troupe::timer alarm =
//         rt.after(std::chrono::hours(1), [] { std::cout << "an hour later\n"; });
//     std::cout << alarm.cancel() << '\n';  // 1
//     rt.run();
class timer {
 public:
  timer() = default;
  timer(timer&& other) noexcept : call_(std::exchange(other.call_, nullptr)) {}
  timer& operator=(timer&& other) noexcept {
    timer(std::move(other)).swap(*this);
    return *this;
  }
  ~timer() {
    if (call_ != nullptr) drop();
  }

  // Prevents further calls. Returns true if there would have been one; false if the last one has
  // begun, or if there is no timer. Does not wait for a running call. Cost: about 50 ns.
  bool cancel() noexcept;

  void swap(timer& other) noexcept { std::swap(call_, other.call_); }

 private:
  friend class runtime_core;
  explicit timer(scheduled_call& call) noexcept : call_(&call) {}
  void drop() noexcept;
  scheduled_call* call_ = nullptr;
};

}  // namespace troupe
