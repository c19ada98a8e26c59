// Scopes that use all workers: children that are spawned, and scopes that plain threads await.
#pragma once

#include "troupe/base/language.hpp"

#include <exception>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/actor/blocking.hpp"
#include "troupe/actor/spawn.hpp"
#include "troupe/actor/spawn_task.hpp"
#include "troupe/base/error.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/task/call_context.hpp"
#include "troupe/task/current_actor.hpp"
#include "troupe/task/groups/parallel_child.hpp"
#include "troupe/task/limits.hpp"
#include "troupe/task/scope.hpp"

namespace troupe {

namespace tasks {

template <class T>
task<T> run_in_parallel(task<T> given) {
  parallel_child child;
  task_limits limits;
  limits.stop = child.stop.get_token();
  limits.within = context_ref::current();
  limits.running = &child.running;
  limits.is_last_resort = true;
  future<T> later =
      actor::spawn_task(actor::placement{actor::running_system("task_scope::spawn_parallel")},
                        run_within(std::move(given), std::move(limits)));
  state_of<T>& state = future_access::state(later);
  std::exception_ptr refused;
  bool ends_early = false;
  try {
    co_await arrival_of(state);
  } catch (const cancelled&) {
    ends_early = true;
  } catch (...) {
    ends_early = true;
    refused = std::current_exception();
  }
  if (ends_early) {
    child.stop.request_stop();
    co_await end_of(state, child);
  }
  if (!later.ready()) throw cancelled("troupe: scope: the runtime has ended");
  if (refused != nullptr) {
    static_cast<void>(state.result.take_failure());
    std::rethrow_exception(refused);
  }
  co_return co_await std::move(later);
}

// Blocks the thread until the scope has ended. An exception that ends the wait before stops the
// scope, and is returned when the scope has ended.
std::exception_ptr wait_for_scope(runtime& rt, shared_state& state, std::stop_source& stop);

template <class T>
T block_for_scope(runtime& rt, task<T> all) {
  check_may_block("scope");
  std::stop_source stop;
  task_limits limits;
  limits.stop = stop.get_token();
  limits.within = context_ref::current();
  limits.is_last_resort = true;
  future<T> later = rt.spawn(run_within(std::move(all), std::move(limits)));
  state_of<T>& state = future_access::state(later);
  if (const std::exception_ptr refused = wait_for_scope(rt, state, stop)) {
    static_cast<void>(state.result.take_failure());
    std::rethrow_exception(refused);
  }
  return later.get();
}

}  // namespace tasks

// scope(rt, body), on a plain thread: as co_await scope(body) in a task of this runtime. Blocks the
// thread until the body and all children have ended, and gives the body's value.
//
// Thread: one that is not the runtime's; body and children run on the workers, even before run().
// Under the policies simulated and one_thread the thread that calls run() may call it as well, and
// it then calls run(). Cost: about 10 us. Errors: usage_error in a handler;
// deadlock if the scope needs this thread to call run(); in that case the children are cancelled,
// and have ended when it is thrown. Otherwise as scope(body).
//
// Example:
//     troupe::task<> print(int n) {
//       std::cout << n << '\n';
//       co_return;
//     }
//     int main() {
//       troupe::runtime rt;
//       troupe::scope(rt, [](troupe::task_scope& s) {
//         for (int n = 1; n <= 3; ++n) s.spawn(print(n));
//       });
//     }
template <class Body>
auto scope(runtime& rt, Body&& body) {
  if constexpr (tasks::fits_scope<task_scope, Body>()) {
    return tasks::block_for_scope(
        rt, tasks::run_scope<std::decay_t<Body>>(std::forward<Body>(body), nullptr));
  }
}
template <class Body>
auto scope(runtime& rt, std::vector<std::exception_ptr>& failures, Body&& body) {
  if constexpr (tasks::fits_scope<task_scope, Body>()) {
    return tasks::block_for_scope(
        rt, tasks::run_scope<std::decay_t<Body>>(std::forward<Body>(body), &failures));
  }
}

}  // namespace troupe
