// retry: repeats a failed call, after a delay that grows.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "troupe/base/error.hpp"
#include "troupe/base/time_span.hpp"
#include "troupe/kit/retry_budget.hpp"
#include "troupe/kit/try_later.hpp"
#include "troupe/task/limits.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/timer.hpp"
#include "troupe/task/when.hpp"

namespace troupe {

// How the delays of many callers are spread, so that they do not all return at the same moment.
// Under the simulated policy the random numbers come from the seed.
enum class retry_jitter : std::uint8_t {
  full,   // a random time between zero and the delay; the default
  equal,  // half of the delay plus a random part of the other half
  none,   // the whole delay
};

// The report of one call of retry(). Thread: the call's.
struct retry_report {
  // Why the call ended.
  enum class end : std::uint8_t {
    succeeded,
    attempts,    // all attempts failed
    total_time,  // the next attempt would have begun too late
    budget,      // the shared budget had no retry left
    refused,     // the error is one that is not retried
    cancelled,   // the call was cancelled; such an error is never retried
  };
  unsigned attempts = 0;               // how many were made
  std::chrono::nanoseconds waited{0};  // the sum of the delays
  std::chrono::nanoseconds took{0};    // the whole time
  end ended = end::cancelled;
};

// How often and after which delays retry() calls again. An aggregate of plain values: it may be
// written where it is used. A value that makes no sense is an option_error of the call.
struct retry_policy {
  // The maximum number of attempts, including the first. Default 3; at least 1.
  unsigned attempts = 3;
  // The delay before the first retry. Each later delay is `factor` times as long, up to delay_max.
  // Default 100 ms, 2, 10 s. The jitter makes the delays shorter. An error that is a try_later
  // makes the delay at least as long as the error's own time.
  time_span delay = std::chrono::milliseconds(100);
  double factor = 2;
  time_span delay_max = std::chrono::seconds(10);
  retry_jitter jitter = retry_jitter::full;
  // The time limit of each attempt, which also limits its asks, as in with_deadline. An attempt
  // that takes longer is cancelled and fails with timed_out, which is retried. Default: none.
  time_span attempt_time = time_span::max();
  // The time limit of all attempts and delays together. No retry begins after it; a running attempt
  // is cancelled then and fails with timed_out. Default: none.
  time_span total_time = time_span::max();
  // A budget that this call shares with others. Default: none. Lifetime: retry() copies it; it must
  // live until retry() has returned its task.
  const retry_budget* budget = nullptr;
  // Filled before the task ends, even if it throws. Default: none. Lifetime: until the task has
  // ended or is destroyed.
  retry_report* report = nullptr;
};

// The facts about an attempt: a parameter of the callable that retry() calls, if it takes a
// parameter.
struct retry_attempt {
  unsigned number = 1;              // 1 for the first attempt
  std::exception_ptr last_error{};  // null for the first attempt
};

// The default decision whether an error is retried: each is, except for the errors of the library
// for which asking again does not help (verdict::again::never in error::judged).
struct retry_any_error {
  bool operator()(const std::exception_ptr& failure) const;
};

namespace kit {

// The parts of one call of retry() that do not depend on types.
class retry_course {
 public:
  explicit retry_course(const retry_policy& policy, const retry_budget* budget);
  retry_course(const retry_course&) = delete;
  retry_course& operator=(const retry_course&) = delete;

  const retry_attempt& attempt() const noexcept { return attempt_; }
  // Begins an attempt, and returns its time limit.
  std::chrono::nanoseconds begin();
  void succeed() noexcept { end(retry_report::end::succeeded); }
  // Returns the delay before the next attempt. Throws the error if there is none.
  std::chrono::nanoseconds after(std::exception_ptr failed, bool wanted);

 private:
  void end(retry_report::end how) noexcept;
  std::chrono::nanoseconds next_delay(std::chrono::nanoseconds at_least) noexcept;
  [[noreturn]] void give_up(retry_report::end how);

  const retry_policy policy_;
  const retry_budget* const budget_;
  const std::chrono::nanoseconds began_;
  std::chrono::nanoseconds waited_{0};
  double delay_ns_;
  retry_attempt attempt_{0, {}};
};

bool is_cancellation(const std::exception_ptr& failure) noexcept;
// Empty for an exception that is no error of the library.
std::optional<verdict> verdict_of(const std::exception_ptr& failure) noexcept;

template <class Maker>
decltype(auto) call_maker(Maker& make, const retry_attempt& attempt) {
  if constexpr (std::invocable<Maker&, const retry_attempt&>) {
    return make(attempt);
  } else {
    return make();
  }
}
template <class Maker>
using made_branch = decltype(tasks::make_branch(
    call_maker(std::declval<Maker&>(), std::declval<const retry_attempt&>())));

template <class Predicate>
bool wants_retry(Predicate& retries, const std::exception_ptr& failure) {
  if (is_cancellation(failure)) return false;
  if constexpr (std::predicate<Predicate&, const std::exception_ptr&>) {
    return retries(failure);
  } else {
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& known) {
      return retries(known);
    } catch (...) {
      return false;
    }
  }
}

template <class T>
struct value_of_task;
template <class T>
struct value_of_task<task<T>> {
  using type = T;
};
template <class Maker>
using made_value = typename value_of_task<made_branch<Maker>>::type;

// Within a time limit the attempt is made once the limit has begun, so that the limit goes along
// with its asks.
template <class Maker>
task<made_value<Maker>> make_attempt(Maker& make, const retry_attempt& attempt, time_span at_most) {
  if (at_most == std::chrono::nanoseconds::max())
    return tasks::make_branch(call_maker(make, attempt));
  return with_deadline(at_most,
                       [&make, &attempt] { return tasks::make_branch(call_maker(make, attempt)); });
}

template <class Maker, class Predicate>
task<made_value<Maker>> run_retry(retry_policy policy, Maker make, Predicate retries,
                                  std::shared_ptr<const retry_budget> budget) {
  using value = made_value<Maker>;
  retry_course course(policy, budget.get());
  for (;;) {
    std::exception_ptr failed;
    try {
      const std::chrono::nanoseconds at_most = course.begin();
      task<value> attempt = make_attempt(make, course.attempt(), at_most);
      if constexpr (std::is_void_v<value>) {
        co_await std::move(attempt);
        course.succeed();
        co_return;
      } else {
        decltype(auto) result = co_await std::move(attempt);
        course.succeed();
        co_return std::forward<value>(result);
      }
    } catch (...) {
      failed = std::current_exception();
    }
    const bool wanted = wants_retry(retries, failed);
    const std::chrono::nanoseconds delay = course.after(std::move(failed), wanted);
    co_await sleep_for(delay);
  }
}

}  // namespace kit

// Awaits the result of `make`, and calls it again when that fails: co_await the returned task.
// `make` is called before each attempt, without arguments or with a retry_attempt, and returns a
// task or anything else that can be awaited. The task returns the value of the first attempt that
// succeeds. If none does, it throws the error of the last attempt, unchanged; retry_policy::report
// then holds the number of attempts, and why they ended.
//
// `retries` decides which errors are retried. It takes a `const std::exception&` (other exceptions
// are then not retried) or a `const std::exception_ptr&`. Cancellation is never retried:
// `cancelled` ends the call at once, also during a delay.
//
// Thread: the turns of the caller. Cost: 40 ns and two frames where the first attempt succeeds;
// 4.5 us for each failed attempt, because of its exception. Errors: option_error for a
// policy that makes no sense. Lifetime: `make` and `retries` are kept until the task has ended, and
// `make` until the attempt that it made has ended.
//
// With GCC 12, give `make` a name first if it captures more than plain values (task.hpp).
//
// Example:
//     troupe::task<int> ask_server(int n) {
//       if (n < 3) throw std::runtime_error("no connection");
//       co_return n;
//     }
//     troupe::task<> use() {
//       int calls = 0;
//       const int answer =
//           co_await troupe::retry({.attempts = 5, .delay = std::chrono::milliseconds(1)},
//                                  [&] { return ask_server(++calls); });
//       std::cout << answer << '\n';  // 3
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(use());
//       rt.run();
//     }
template <class Maker, class Predicate = retry_any_error>
[[nodiscard]] auto retry(const retry_policy& policy, Maker&& make, Predicate&& retries = {}) {
  using maker = std::decay_t<Maker>;
  using predicate = std::decay_t<Predicate>;
  constexpr bool makes = std::invocable<maker&> || std::invocable<maker&, const retry_attempt&>;
  constexpr bool decides = std::predicate<predicate&, const std::exception_ptr&> ||
                           std::predicate<predicate&, const std::exception&>;
  static_assert(makes,
                "troupe: retry: it takes a callable that makes a task anew for each attempt: "
                "retry(policy, [&] { return fetch(url); })");
  static_assert(decides,
                "troupe: retry: the predicate takes a const std::exception& or a const "
                "std::exception_ptr&, and returns a bool");
  if constexpr (makes && decides) {
    std::shared_ptr<const retry_budget> budget;
    if (policy.budget != nullptr) budget = std::make_shared<const retry_budget>(*policy.budget);
    return kit::run_retry<maker, predicate>(policy, std::forward<Maker>(make),
                                            std::forward<Predicate>(retries), std::move(budget));
  }
}

}  // namespace troupe
