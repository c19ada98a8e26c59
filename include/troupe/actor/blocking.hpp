// blocking: calls that block a thread, made on threads outside of the pool.
#pragma once

#include "troupe/base/language.hpp"

#include <exception>
#include <type_traits>
#include <utility>

#include "troupe/base/type_name.hpp"
#include "troupe/base/unique_function.hpp"
#include "troupe/task/call_context.hpp"
#include "troupe/task/future.hpp"

namespace troupe {

namespace actor {

class actor_system;
void run_aside(actor_system& system, unique_function<void()> procedure);
// A simulated program has no threads outside of run(): only run() can complete this result.
void mark_simulated(const actor_system& system, tasks::shared_state& result) noexcept;
// The system of the actor whose handler is running. Throws usage_error outside of handlers and
// tasks; `caller` is the name that the message gives.
actor_system& running_system(const char* caller);
std::exception_ptr dropped_call_error() noexcept;

// The promise of a call that may be dropped before it begins, by a stop that discards or by the
// runtime's end: its future throws cancelled then, as other waits do.
template <class T>
class promise_of_call {
 public:
  explicit promise_of_call(promise<T>&& result) noexcept : result_(std::move(result)) {}
  promise_of_call(promise_of_call&& other) noexcept
      : result_(std::move(other.result_)), waits_(std::exchange(other.waits_, false)) {}
  promise_of_call& operator=(promise_of_call&&) = delete;
  ~promise_of_call() {
    if (waits_) result_.set_exception(dropped_call_error());
  }
  promise<T> begin() noexcept {
    waits_ = false;
    return std::move(result_);
  }

 private:
  promise<T> result_;
  bool waits_ = true;
};

template <class Function>
auto call_aside(actor_system& system, Function&& function) {
  using result = std::invoke_result_t<std::decay_t<Function>&>;
  promise<result> unanswered;
  future<result> later = unanswered.get_future();
  mark_simulated(system, tasks::future_access::state(later));
  run_aside(system, [waits = promise_of_call<result>(std::move(unanswered)),
                     within = tasks::context_ref::current(),
                     function =
                         std::decay_t<Function>(std::forward<Function>(function))]() mutable {
    promise<result> promised = waits.begin();
    std::exception_ptr failure;
    tasks::inside_span span(within.get(), "blocking", base::type_name<std::decay_t<Function>>());
    try {
      span.check();
      if constexpr (std::is_void_v<result>) {
        function();
        promised.set_value();
      } else {
        promised.set_value(function());
      }
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure != nullptr) span.fail(failure);
    // Set after the catch block, so that this thread no longer refers to the exception
    // when the receiver has it.
    if (failure != nullptr) promised.set_exception(std::move(failure));
  });
  return later;
}

}  // namespace actor

// Calls a function that may block (a file, a lock, a foreign library) on a thread of the blocking
// pool, and returns a future of its value or exception: co_await it.
//
// Thread: call it in a handler, a task or a posted procedure; elsewhere it throws usage_error, and
// runtime::blocking is the function to use. Limits: at most runtime_options::blocking_threads calls
// run at a time; the others queue. Cost: about 20 us. Lifetime: the function must own its captures.
// If the future is dropped, the call still runs to its end, and its result is dropped. The program
// is not out of work before the call has ended. If a stop discards messages or the runtime ends
// before a call has begun, the call never runs: its future throws cancelled.
//
// GCC 12 destroys the captures of a lambda twice if the lambda is written inside the co_await
// expression (task.hpp). If a lambda captures more than plain values, name it first and std::move
// it in. Under the simulated policy the function runs in a turn of its own and takes no virtual
// time.
//
// Example:
//     troupe::task<> read() {
//       std::string name =
//           co_await troupe::blocking([] { return std::string("read from a slow disk"); });
//       std::cout << name << '\n';
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(read());
//       rt.run();
//     }
template <class Function>
[[nodiscard]] auto blocking(Function&& function) {
  return actor::call_aside(actor::running_system("blocking"), std::forward<Function>(function));
}

}  // namespace troupe
