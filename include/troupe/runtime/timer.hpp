// timer: a call that is due later, as runtime::after and every give it.
#pragma once

#include <utility>

namespace troupe {

struct scheduled_call;

// Takes the call back, or lets it come: a timer that is dropped does not end anything. Move-only;
// any thread, one at a time; it may outlive its runtime.
//
// Example:
//     troupe::runtime rt;
//     troupe::timer alarm = rt.after(std::chrono::hours(1), [] { std::cout << "an hour later\n";
//     }); std::cout << alarm.cancel() << '\n';  // 1 rt.run();
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

  // No call begins after this. True when one would have; false when the last one has begun, or
  // there is no timer. Does not wait for one that is running. Cost: about 50 ns.
  bool cancel() noexcept;

  void swap(timer& other) noexcept { std::swap(call_, other.call_); }

 private:
  friend class runtime_core;
  explicit timer(scheduled_call& of) noexcept : call_(&of) {}
  void drop() noexcept;
  scheduled_call* call_ = nullptr;
};

}  // namespace troupe
