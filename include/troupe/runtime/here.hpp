// here: the runtime's functions for a handler or a task that has no reference to its runtime.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <utility>

#include "troupe/actor/blocking.hpp"
#include "troupe/actor/ref.hpp"
#include "troupe/actor/spawn.hpp"
#include "troupe/actor/spawn_task.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/base/time_span.hpp"
#include "troupe/base/unique_function.hpp"
#include "troupe/runtime/options.hpp"
#include "troupe/runtime/timer.hpp"

namespace troupe {

namespace detail {
// Throws option_error for options that make no sense.
actor::placement place_in(actor::actor_system& system, const spawn_options& chosen);
}  // namespace detail

// As runtime::spawn on the pool, for the runtime of the calling code. Thread: call it in a handler,
// a constructor, a destructor or a task of an actor, or in a procedure of post(), after() or
// every(); elsewhere it throws usage_error. For an actor with a thread of its own use
// runtime::spawn.
//
// Example:
//     struct Leaf {
//       int weigh() { return 1; }
//     };
//     struct Tree {
//       troupe::task<> grow(int n) {
//         for (int i = 0; i < n; ++i)
//           std::cout << co_await troupe::spawn<Leaf>().ask<&Leaf::weigh>();
//       }
//     };
//     troupe::runtime rt;
//     rt.spawn<Tree>().tell<&Tree::grow>(3);
//     rt.run();
template <class T, class... Args>
requires(!actor::starts_with_v<spawn_options, Args...> &&
         !actor::starts_with_v<on_thread, Args...>) ref<T> spawn(Args&&... args) {
  return actor::spawn<T>(actor::placement{actor::running_system("spawn")},
                         std::forward<Args>(args)...);
}
template <class T, class... Args>
ref<T> spawn(const spawn_options& options, Args&&... args) {
  return actor::spawn<T>(detail::place_in(actor::running_system("spawn"), options),
                         std::forward<Args>(args)...);
}
// As runtime::spawn of a task, and of a callable that makes one.
template <class T>
future<T> spawn(task<T>&& running) {
  return actor::spawn_task(actor::placement{actor::running_system("spawn")}, std::move(running));
}
template <int = 0, actor::may_make_task Maker, class... Args>
auto spawn(Maker&& maker, Args&&... args) {
  return actor::spawn_made(actor::placement{actor::running_system("spawn")},
                           std::forward<Maker>(maker), std::forward<Args>(args)...);
}
template <class T>
future<T> spawn(task<T>& running) {
  static_assert(!std::is_same_v<T, T>,
                "troupe: spawn: a task is given away: spawn(std::move(the_task))");
  return spawn(std::move(running));
}
TROUPE_REFUSE_REST(spawn, TROUPE_SPAWN_REFUSES);

// As runtime::after and runtime::every, for the runtime of the calling code. Thread: as for spawn.
//
// Example:
//     struct Lamp {
//       void flash() {
//         std::cout << "on\n";
//         troupe::after(std::chrono::seconds(1), [] { std::cout << "off\n"; });
//       }
//     };
//     troupe::runtime rt({.policy = troupe::policy::simulated});
//     rt.spawn<Lamp>().tell<&Lamp::flash>();
//     rt.run();
timer after(time_span span, unique_function<void()> procedure, const timer_options& options);
inline timer after(time_span span, unique_function<void()> procedure) {
  return after(span, std::move(procedure), timer_options());
}
timer every(time_span period, unique_function<void()> procedure, const timer_options& options);
inline timer every(time_span period, unique_function<void()> procedure) {
  return every(period, std::move(procedure), timer_options());
}
template <tasks::makes_task Procedure>
timer after(time_span, Procedure&&, const timer_options&) {
  static_assert(!tasks::makes_task<Procedure>, TROUPE_REFUSES_COROUTINE_OF("after"));
  return {};
}
template <tasks::makes_task Procedure>
timer after(time_span span, Procedure&& procedure) {
  return after(span, std::forward<Procedure>(procedure), timer_options());
}
template <tasks::makes_task Procedure>
timer every(time_span, Procedure&&, const timer_options&) {
  static_assert(!tasks::makes_task<Procedure>, TROUPE_REFUSES_COROUTINE_OF("every"));
  return {};
}
template <tasks::makes_task Procedure>
timer every(time_span span, Procedure&& procedure) {
  return every(span, std::forward<Procedure>(procedure), timer_options());
}
TROUPE_REFUSE_REST(after, TROUPE_TIMER_REFUSES("after"));
TROUPE_REFUSE_REST(every, TROUPE_TIMER_REFUSES("every"));

// As runtime::now: virtual under the simulated policy. Thread: as for spawn.
std::chrono::nanoseconds now();

}  // namespace troupe
