// with_deadline, with_stop and with_trace: limits and a trace for a call and all its work.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <chrono>
#include <concepts>
#include <coroutine>
#include <exception>
#include <functional>
#include <optional>
#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>

#include "troupe/base/platform.hpp"
#include "troupe/base/time_span.hpp"
#include "troupe/observe/trace.hpp"
#include "troupe/task/call_context.hpp"
#include "troupe/task/future.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/trace_context.hpp"
#include "troupe/task/when.hpp"

namespace troupe {

namespace tasks {

// The limits of a task: a time, a stop, and the limits of the call `within`, or, if that is null,
// of the call that awaits the task. `running`, if given, is set to that call.
struct task_limits {
  task_limits() noexcept {}  // no aggregate, since g++ 12 destroys those twice (task.hpp)
  task_limits(task_limits&&) noexcept = default;
  time_span at_most = time_span::max();
  std::stop_token stop;
  std::optional<trace_context> trace;
  const char* span = nullptr;  // the name of a span of its own, a literal
  span_kind kind = span_kind::internal;
  context_ref within;
  std::atomic<async_call*>* running = nullptr;
  // Whether the stop comes only after a deadlock, or after the end of the call that waits for the
  // task: then the search for deadlocks examines the task.
  bool is_last_resort = false;
};

// Awaits a task as a branch, in a context of its own.
class limited_branch {
 public:
  limited_branch(coroutine& root, task_limits limits)
      : group_(false), branch_(group_, root), limits_(std::move(limits)) {}
  limited_branch(const limited_branch&) = delete;
  limited_branch& operator=(const limited_branch&) = delete;
  ~limited_branch() {
    leave();
    if (span_ != nullptr) [[unlikely]]
      end_span(nullptr);
  }

  class awaiter {
   public:
    explicit awaiter(limited_branch& branch) noexcept : branch_(branch) {}
    bool await_ready() const noexcept { return false; }
    template <std::derived_from<promise_base> Promise>
    bool await_suspend(std::coroutine_handle<Promise> awaiting) {
      return branch_.suspend(awaiting.promise());
    }
    void await_resume() const noexcept { branch_.leave(); }

   private:
    limited_branch& branch_;
  };
  // Waits until the task has ended.
  awaiter end() noexcept { return awaiter(*this); }
  // Throws if the limits have ended the task. `failure` is the exception that the task threw.
  void check(const std::exception_ptr& failure);

 private:
  bool suspend(coroutine& awaiting);
  void leave() noexcept;
  void end_span(const std::exception_ptr& failure) noexcept;

  fixed_group group_;
  branch branch_;
  task_limits limits_;
  call_context* own_ = nullptr;
  call_context* span_ = nullptr;  // of its own
  std::exception_ptr over_;
};

template <class T>
task<T> run_within(task<T> inner, task_limits given) {
  limited_branch limits(task_access::root(inner), std::move(given));
  co_await limits.end();
  limits.check(task_access::result(inner).failure());
  co_return task_access::result(inner).take();
}

// The task in the trace of the caller, which may end before the task begins; the same task if there
// is none.
template <class T>
TROUPE_NOINLINE task<T> in_current_trace(task<T> inner) {
  task_limits limits;
  limits.within = context_ref::current_trace();
  if (limits.within.get() == nullptr) return inner;
  return run_within(std::move(inner), std::move(limits));
}

// The task in a span of its own; the same task while no spans are recorded and no runtime counts
// the times of named spans.
template <class T>
task<T> in_span(task<T> inner, span_kind kind, const char* name) {
  const auto spans = static_cast<unsigned>(observe::watched::spans);
  const auto counts = static_cast<unsigned>(observe::watched::counts);
  if ((observe::all_watched() & (kind == span_kind::internal ? spans | counts : spans)) == 0)
      [[likely]]
    return inner;
  task_limits limits;
  limits.span = name;
  limits.kind = kind;
  return run_within(std::move(inner), std::move(limits));
}

template <class Given>
inline constexpr bool is_future = false;
template <class T>
inline constexpr bool is_future<future<T>> = true;
// A future, with or without limits of its own: the call that produces its result has already begun.
template <class Held>
consteval bool has_begun() {
  if constexpr (is_future<Held>) {
    return true;
  } else if constexpr (requires { typename future<awaited_value<Held>>::limited; }) {
    return std::is_same_v<Held, typename future<awaited_value<Held>>::limited>;
  } else {
    return false;
  }
}

// Calls the callable that makes an awaitable within the limits, so that they also apply to an ask.
template <class Call>
task<awaited_value<std::invoke_result_t<Call&>>> await_call(Call call) {
  auto inner = std::invoke(call);
  co_return co_await std::move(inner);
}

template <class Given>
auto make_limited(Given&& given) {
  using held = std::decay_t<Given>;
  if constexpr (std::is_invocable_v<held&> && !awaitable<held>) {
    return await_call<held>(std::forward<Given>(given));
  } else if constexpr (fit_branches<Given>()) {
    static_assert(!has_begun<held>(),
                  "troupe: with_deadline and with_stop: the call that gives this future has begun "
                  "without the limit. Give a callable that begins it: with_deadline(2s, [&] { "
                  "return to.ask<&T::method>(); })");
    return make_branch(std::forward<Given>(given));
  } else {
    return task<std::tuple<>>(all_of());
  }
}

}  // namespace tasks

// co_await with_deadline(span, task): awaits a task, or the awaitable that a callable makes, and
// returns its value. An ask is sent when it is made; therefore let a callable make it within the
// limit. After `span`, counted from the co_await, the task is cancelled with all work that it has
// begun: its waits, its children, and the handlers of actors that it asks, directly or through
// others; a blocking function or a lazy can read the limit by this_call. When the task has ended,
// the co_await throws timed_out. Of nested deadlines the nearest wins. An ask that is handled after
// its deadline is not run.
//
// Thread: the turns of the actor that awaits it. Cost: about 300 ns. Errors: timed_out if the
// deadline has ended the task; if the task still returns a value or throws another exception, that
// is the result. A `tell` and a spawned task are not limited.
//
// Example:
//     struct Store {
//       troupe::task<int> read() {
//         co_await troupe::sleep_for(std::chrono::hours(1));
//         co_return 1;
//       }
//     };
//     troupe::task<> use(troupe::ref<Store> store) {
//       try {
//         co_await troupe::with_deadline(std::chrono::milliseconds(5),
//                                        [&] { return store.ask<&Store::read>(); });
//       } catch (const troupe::timed_out&) {
//         std::cout << "the store is slow\n";
//       }
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(use(rt.spawn<Store>()));
//       rt.run();
//     }
template <class Given>
auto with_deadline(time_span span, Given&& given) {
  tasks::task_limits limits;
  limits.at_most = span;
  return tasks::run_within(tasks::make_limited(std::forward<Given>(given)), std::move(limits));
}
// The same for a stop token: when a stop is requested, all work that the task has begun is
// cancelled, and the co_await throws cancelled.
template <class Given>
auto with_stop(std::stop_token token, Given&& given) {
  tasks::task_limits limits;
  limits.stop = std::move(token);
  return tasks::run_within(tasks::make_limited(std::forward<Given>(given)), std::move(limits));
}

// co_await with_trace(context, task): awaits a task, or the awaitable that a callable makes, within
// a trace. All its work belongs to the trace: its children, the handlers of other actors that it
// asks or tells, tasks that it spawns, calls of after() and every(), its lazies and blocking
// functions. With the first with_trace of a process each `tell` costs about 3 ns more; a `tell`
// within a trace costs about 40 ns more, and a `spawn` of a task within a trace about 300 ns more.
//
// Thread: the turns of the actor that awaits it. Errors: the task's.
//
// Example:
//     struct Log {
//       void line() { std::cout << troupe::this_call::trace()->traceparent().size() << '\n'; }
//     };
//     troupe::task<> use(troupe::ref<Log> log) {
//       co_await troupe::with_trace(troupe::trace_context::begin(), [&]() -> troupe::task<> {
//         log.tell<&Log::line>();
//         co_return;
//       });
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(use(rt.spawn<Log>()));
//       rt.run();  // prints 55
//     }
template <class Given>
auto with_trace(const trace_context& where, Given&& given) {
  tasks::task_limits limits;
  limits.trace = where;
  return tasks::run_within(tasks::make_limited(std::forward<Given>(given)), std::move(limits));
}

}  // namespace troupe
