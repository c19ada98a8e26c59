// circuit_breaker: stops calling a service that fails most of the time, and tries it again later.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "troupe/base/time_span.hpp"
#include "troupe/kit/retry.hpp"
#include "troupe/kit/try_later.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/when.hpp"

namespace troupe {

// The state of a circuit_breaker.
enum class circuit : std::uint8_t {
  closed,     // calls pass, and their failures are counted
  open,       // calls are refused
  half_open,  // a few calls pass as trials, and the others are refused
};

// A circuit breaker refused a call, which was not begun. retry_after() is the time until the
// breaker lets a call through again.
class circuit_open : public try_later {
  using try_later::try_later;
};

// The default decision whether an error is a failure of the service: each is, except for errors of
// the library whose fault is the caller's or this program's (error::judged).
struct fault_of_service {
  bool operator()(const std::exception_ptr& failure) const;
};

// Options of a circuit_breaker. A value that makes no sense is an option_error.
struct circuit_options {
  // The circuit opens when at least this part of the calls within the window has failed. Default
  // 0.5; above 0, at most 1.
  double failure_rate = 0.5;
  // With fewer finished calls within the window it does not open. Default 10; at least 1.
  std::uint32_t calls_min = 10;
  // The length of the window in which calls count. It moves in steps of a tenth. Default 10 s; at
  // least 10 ns.
  time_span window = std::chrono::seconds(10);
  // How long an open circuit refuses calls before it lets trials through. Default 5 s; at least
  // 1 ns.
  time_span open_for = std::chrono::seconds(5);
  // The number of calls that pass as trials. When all of them have succeeded, the circuit closes;
  // the first failed trial opens it again. Default 1; at least 1.
  std::uint32_t trials = 1;
};

// The counts of a circuit breaker.
struct circuit_counts {
  circuit state = circuit::closed;
  std::uint64_t succeeded = 0, failed = 0;  // within the window
  std::uint64_t refused = 0;                // since the beginning
  std::uint64_t opened = 0;                 // how often the circuit opened, since the beginning
  // how long it refuses calls from now on; zero unless it is open
  time_span retry_after{};
};

namespace kit {
class circuit_state;
// Whether the call ended before it could show whether the service works: it was cancelled, or the
// fault is the caller's or this program's, and nothing was done.
bool shows_nothing(const std::exception_ptr& failure) noexcept;
}  // namespace kit

// Guards calls to a service that may be down. While most calls fail it refuses further ones at
// once: callers do not wait for a service that will not answer, and the service can recover. Copies
// refer to the same breaker.
//
// Thread: any. Cost: 80 ns a call. Memory: 380 bytes. Errors: option_error.
//
// Example:
//     troupe::task<int> ask_server() { throw std::runtime_error("no connection"); co_return 0; }
//     troupe::task<> use(troupe::circuit_breaker breaker) {
//       for (int i = 0; i < 4; ++i) {
//         try {
//           co_await breaker.call(ask_server());
//         } catch (const troupe::circuit_open&) {
//           std::cout << "refused\n";  // twice
//         } catch (const std::exception& e) {
//           std::cout << e.what() << '\n';  // twice
//         }
//       }
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(use(troupe::circuit_breaker({.calls_min = 2})));
//       rt.run();
//     }
class circuit_breaker {
 public:
  explicit circuit_breaker(circuit_options options = {});

  // The right to make one call, which the holder makes itself: for calls that are no tasks, and for
  // plain threads. Report the call's end once; a permit that is dropped counts as neither.
  // Move-only.
  class permit {
   public:
    permit(permit&& other) noexcept = default;
    permit& operator=(permit&& other) noexcept {
      permit(std::move(other)).swap(*this);
      return *this;
    }
    ~permit();
    void succeed() noexcept;
    void fail() noexcept;
    void swap(permit& other) noexcept {
      circuit_.swap(other.circuit_);
      std::swap(period_, other.period_);
    }

   private:
    friend kit::circuit_state;
    permit(std::shared_ptr<kit::circuit_state> circuit, std::uint64_t period) noexcept
        : circuit_(std::move(circuit)), period_(period) {}
    std::shared_ptr<kit::circuit_state> circuit_;
    std::uint64_t period_;  // results that come after the circuit has changed are not counted
  };
  // Throws circuit_open.
  [[nodiscard]] permit enter() const;

  // Runs the task and returns its value or throws its exception. If the breaker refuses the call,
  // it throws circuit_open, and destroys the task before it begins. `counts` decides which
  // exceptions are failures of the service: it takes a `const std::exception&` (exceptions of other
  // types then never count) or a `const std::exception_ptr&`. An exception for which it returns
  // false counts as a success; but it does not count at all if the error shows that nothing was
  // done, by a fault of the caller or of this program. A cancelled call never counts. Instead of a
  // task it may be given a callable that makes one, which is not called if the call is refused.
  template <class T, class Predicate = fault_of_service>
  [[nodiscard]] task<T> call(task<T> called, Predicate counts = {}) const {
    return run(std::move(called), *this, std::move(counts));
  }
  template <class Maker, class Predicate = fault_of_service>
  requires(tasks::makes_task<Maker>)
      [[nodiscard]] auto call(Maker make, Predicate counts = {}) const {
    using value = typename kit::value_of_task<std::invoke_result_t<Maker&>>::type;
    return run_made<value>(*this, std::move(make), std::move(counts));
  }

  // Thread: any. An open circuit whose time is over is half open.
  circuit state() const;
  circuit_counts counts() const;
  // Closes the circuit and clears the counts of the window.
  void reset() const;

 private:
  // The task is the first parameter, so that this coroutine remembers the same object as the task
  // (task.hpp).
  template <class T, class Predicate>
  static task<T> run(task<T> called, circuit_breaker self, Predicate counts) {
    permit inside = self.enter();
    std::exception_ptr failed;
    try {
      if constexpr (std::is_void_v<T>) {
        co_await std::move(called);
        inside.succeed();
        co_return;
      } else {
        decltype(auto) result = co_await std::move(called);
        inside.succeed();
        co_return std::forward<T>(result);
      }
    } catch (...) {
      failed = std::current_exception();
    }
    if (kit::wants_retry(counts, failed)) {
      inside.fail();
    } else if (!kit::shows_nothing(failed)) {
      inside.succeed();
    }
    std::rethrow_exception(std::move(failed));
  }
  template <class T, class Maker, class Predicate>
  static task<T> run_made(circuit_breaker self, Maker make, Predicate counts) {
    // The callable is called once the call has begun: the task that is run calls it.
    task<T> later = call_later<T>(make);
    task<T> all = run(std::move(later), std::move(self), std::move(counts));
    co_return co_await std::move(all);
  }
  template <class T, class Maker>
  static task<T> call_later(Maker& make) {
    task<T> called = make();
    co_return co_await std::move(called);
  }
  std::shared_ptr<kit::circuit_state> state_;
};

}  // namespace troupe
