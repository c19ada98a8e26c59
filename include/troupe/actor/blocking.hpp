// blocking: calls that hold a thread, away from the pool.
#pragma once

#include <exception>
#include <functional>
#include <type_traits>
#include <utility>

#include "troupe/task/future.hpp"

namespace troupe {

namespace actor {

class actor_system;
void run_aside(actor_system& system, std::move_only_function<void()> procedure);
// A simulated program has no threads aside: this comes in run() alone.
void mark_simulated(const actor_system& system, tasks::shared_state& result) noexcept;
// The system of the handler that is running. usage_error elsewhere.
actor_system& running_system(const char* who);

template <class Function>
auto call_aside(actor_system& system, Function&& function) {
  using result = std::invoke_result_t<std::decay_t<Function>&>;
  promise<result> promised;
  future<result> later = promised.get_future();
  mark_simulated(system, tasks::future_access::state(later));
  run_aside(system,
            [promised = std::move(promised),
             function = std::decay_t<Function>(std::forward<Function>(function))]() mutable {
              std::exception_ptr failure;
              try {
                if constexpr (std::is_void_v<result>) {
                  function();
                  promised.set_value();
                } else {
                  promised.set_value(function());
                }
              } catch (...) {
                failure = std::current_exception();
              }
              // Not while it is being handled here: who gets it has it alone.
              if (failure != nullptr) promised.set_exception(std::move(failure));
            });
  return later;
}

}  // namespace actor

// Calls a function that may block (a file, a lock, a library of others) on a thread of the side
// pool, and gives its value or exception to the future: co_await it. In a handler or a task;
// elsewhere use runtime::blocking. The function must own what it captures. When nobody waits any
// more the call goes on, and its result is dropped. Limits: as many at a time as
// runtime_options::blocking_threads; the others queue. Cost: about 20 us. Until it has ended the
// program is not out of work. GCC 12 destroys what a lambda captures twice when that is written
// inside the co_await (task.hpp): give one that captures more than plain values a name first, and
// std::move it in. Under the simulated policy it is called in a turn of its own, and takes no
// virtual time.
//
// Example:
//     troupe::task<> read() {
//       std::string name = co_await troupe::blocking([] { return std::string("read from a slow
//       disk"); }); std::cout << name << '\n';
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
