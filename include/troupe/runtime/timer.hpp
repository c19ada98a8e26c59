// timer: a call that is due later; the return value of runtime::after and runtime::every.
#pragma once

#include <utility>

namespace troupe {

struct scheduled_call;

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
  explicit timer(scheduled_call& of) noexcept : call_(&of) {}
  void drop() noexcept;
  scheduled_call* call_ = nullptr;
};

}  // namespace troupe
