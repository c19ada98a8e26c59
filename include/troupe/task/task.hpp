// task<T>: a coroutine that starts when a coroutine awaits it, and then resumes that coroutine.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/base/platform.hpp"
#include "troupe/base/time_span.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/current_actor.hpp"
#include "troupe/task/groups/foreign_wait.hpp"
#include "troupe/task/result.hpp"

namespace troupe {

template <class T = void>
class task;

namespace tasks {

// Coroutine frames come from the block pool. Never inlined: a coroutine that destroys another one
// must not keep the address of the pool's thread-local across a suspension, after which it may run
// on another thread.
void* allocate_frame(std::size_t bytes);
void deallocate_frame(void* frame, std::size_t bytes) noexcept;

template <class Awaitable>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;

// Whether an awaitable is passed on by value (promise_base): its class declares passed_by_value.
template <class Awaitable>
concept is_small_awaitable = requires {
  typename Awaitable::passed_by_value;
};

// Whether the awaited operation runs before its user suspends (async_generator.hpp), so that a
// value which is ready needs no suspension. The function returns the awaitable.
template <class Awaitable>
concept runs_before_suspension = requires(Awaitable& awaited, coroutine& user) {
  awaited.run_before_suspension(user);
};

// The compile error for timeout() and stop() of a named awaitable. `Refused` is void; it is a
// template parameter so that the error appears only when such a function is called.
template <class Refused>
[[noreturn]] void refuse_named_awaitable() {
  static_assert(!std::is_void_v<Refused>,
                "troupe: timeout() and stop() take over the awaitable: co_await "
                "std::move(later).timeout(...), or co_await the call that makes it, as "
                "actor.ask<&T::method>().timeout(...)");
  std::terminate();
}

// The part of a task's promise that does not depend on the value's type.
struct promise_base : coroutine {
  static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
  static void operator delete(void* frame, std::size_t bytes) noexcept {
    deallocate_frame(frame, bytes);
  }

  struct final_awaiter {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> done) const noexcept {
      coroutine& self = done.promise();
      self.end();
    }
    void await_resume() const noexcept {}
  };
  std::suspend_always initial_suspend() const noexcept { return {}; }
  final_awaiter final_suspend() const noexcept { return {}; }

#define TROUPE_AWAITED_ONCE "troupe: a task is awaited once: co_await std::move(the_task)"
  template <class T TROUPE_SAYS(TROUPE_AWAITED_ONCE)>
  std::suspend_never await_transform(task<T>&) TROUPE_REFUSED(TROUPE_AWAITED_ONCE);
#undef TROUPE_AWAITED_ONCE
#define TROUPE_AWAITED_VALUE                                   \
  "troupe: co_await takes a pending result: a task, a future " \
  "(actor.ask<&T::method>(...)), sleep_for(span), I/O; this is a value already"
  template <class Value TROUPE_SAYS(TROUPE_AWAITED_VALUE)>
  requires(std::is_scalar_v<std::remove_cvref_t<Value>>) std::suspend_never await_transform(Value&&)
  TROUPE_REFUSED(TROUPE_AWAITED_VALUE);
#undef TROUPE_AWAITED_VALUE
  // One that is as small as a pointer is passed on by value, and a loop does not store the same
  // line again: each store to the frame costs a cycle.
  template <class Awaitable>
  requires(is_small_awaitable<Awaitable>) Awaitable
      await_transform(Awaitable awaited, source_line where = __builtin_source_location())
  noexcept {
    if (awaits_at != where) [[unlikely]]
      awaits_at = where;
    return awaited;
  }
  template <class Awaitable>
  requires(runs_before_suspension<Awaitable>) auto await_transform(
      Awaitable awaited, source_line where = __builtin_source_location()) {
    if (awaits_at != where) [[unlikely]]
      awaits_at = where;
    return awaited.run_before_suspension(*this);
  }
  template <class Awaitable>
  requires(foreign_awaitable<Awaitable>) foreign_await<Awaitable> await_transform(
      Awaitable&& awaited, source_line where = __builtin_source_location()) {
    awaits_at = where;
    return foreign_await<Awaitable>(std::forward<Awaitable>(awaited));
  }
  template <class Awaitable>
  requires(!std::is_scalar_v<std::remove_cvref_t<Awaitable>> &&
           !is_small_awaitable<std::remove_cvref_t<Awaitable>> &&
           !runs_before_suspension<std::remove_cvref_t<Awaitable>> &&
           !foreign_awaitable<Awaitable>) Awaitable &&
      await_transform(Awaitable&& awaited, source_line where = __builtin_source_location())
  noexcept {
    static_assert(
        !is_task<std::remove_cvref_t<Awaitable>> || std::is_rvalue_reference_v<Awaitable&&>,
        "troupe: a task is awaited once: co_await std::move(the_task)");
    awaits_at = where;
    return std::forward<Awaitable>(awaited);
  }
};

// Whether a coroutine with this parameter wraps tasks that it was given (timeout(), when_all). Such
// a coroutine counts as a part of the object of which those tasks are parts.
template <class Object>
inline constexpr bool holds_tasks = is_task<Object>;
template <class T>
inline constexpr bool holds_tasks<std::vector<task<T>>> = true;

// The object that a coroutine remembers before it begins: the object whose method it is, or its
// first argument. A coroutine that wraps tasks takes the object that a task remembers; of several
// tasks, the first one whose object is a part of the running actor decides.
class remembered_object {
 public:
  template <class First, class... Args>
  explicit remembered_object(const First& first, const Args&... args) noexcept {
    if constexpr (holds_tasks<First>) {
      look(first);
      (look(args), ...);
    } else {
      found_ = std::addressof(first);
    }
  }
  const volatile void* get() const noexcept { return found_; }

 private:
  template <class T>
  void look(const task<T>& argument) noexcept;
  template <class T>
  void look(const std::vector<task<T>>& all) noexcept {
    for (const task<T>& argument : all) look(argument);
  }
  template <class Other>
  void look(const Other&) noexcept {}
  const volatile void* found_ = nullptr;
};

template <class T>
struct promise_of final : promise_base {
  promise_of() noexcept {}
  template <class Object, class... Args>
  // g++ 12 also matches an `Object&` of an object as an Object
  requires std::is_class_v<std::remove_reference_t<Object>>
  explicit promise_of(Object& object, const Args&... args) noexcept {
    remember_object(remembered_object(object, args...).get());
  }
  task<T> get_return_object() noexcept;
  template <class Value = T>
  requires std::constructible_from<stored<T>, Value> || std::is_reference_v<T>
  void return_value(Value&& value) { result.set(std::forward<Value>(value)); }
#define TROUPE_OTHER_VALUE \
  "troupe: co_return: a task<T> gives a T, which cannot be made of this value"
  template <class Value TROUPE_SAYS(TROUPE_OTHER_VALUE)>
  requires(!std::constructible_from<stored<T>, Value> &&
           !std::is_reference_v<T>) void return_value(Value&&) TROUPE_REFUSED(TROUPE_OTHER_VALUE);
#undef TROUPE_OTHER_VALUE
  void unhandled_exception() noexcept { result.fail(std::current_exception()); }
  result_of<T> result;
};

template <>
struct promise_of<void> final : promise_base {
  promise_of() noexcept {}
  template <class Object, class... Args>
  // g++ 12 also matches an `Object&` of an object as an Object
  requires std::is_class_v<std::remove_reference_t<Object>>
  explicit promise_of(Object& object, const Args&... args) noexcept {
    remember_object(remembered_object(object, args...).get());
  }
  task<void> get_return_object() noexcept;
  void return_void() { result.set(); }
  void unhandled_exception() noexcept { result.fail(std::current_exception()); }
  result_of<void> result;
};

// The child begins in the loop of the async call, or when others have run.
TROUPE_NOINLINE inline void begin_later(coroutine& child, coroutine& parent,
                                        bool behind_others) noexcept {
  child.parent = coroutine::as_parent(parent);
  child.awaits_at = parent.awaits_at;  // for whoever looks at it while others run
  if (!behind_others || !start_behind_others(child)) child.call->push(child);
}

// Called when the parent is about to suspend for its child. Most children never suspend. The child
// therefore runs at once, inside the parent's co_await, unless children are already nested too
// deep, or others must run first; the parent suspends only if the child does. Returns whether the
// parent must suspend.
TROUPE_INLINE bool run_child(coroutine& child, coroutine& parent) noexcept {
  async_call& call = *parent.call;
  child.call = &call;
  const bool may_spend = call.spend_start();
  if (!may_spend || call.nested == async_call::nested_max) [[unlikely]] {
    begin_later(child, parent, !may_spend);
    return true;
  }
  const std::uintptr_t awaiting = coroutine::as_parent(parent);
  child.parent = awaiting | coroutine::nested;
  ++call.nested;
  child.handle().resume();
  --call.nested;
  if (child.parent == 0) return false;
  // The loop of the async call resumes the child later: not before this function returns.
  child.parent = awaiting;
  return true;
}

struct task_access;

// True for tasks, works and forks (work.hpp).
template <class T>
inline constexpr bool runs_when_awaited = is_task<T>;
// Whether a call of Function only makes a coroutine, which runs when it is awaited.
template <class Function, class... Args>
concept makes_task =
    runs_when_awaited < std::remove_cvref_t < std::invoke_result_t < std::decay_t<Function>
&, Args... >>> ;

}  // namespace tasks

// A lazy coroutine. It starts when it is awaited, when the actor method that returned it was called
// by a message, or when it was passed to runtime::spawn. Move-only. Await it once, in another task:
// co_await gives its value or throws its exception.
//
// Thread: it runs in the turns of the actor (or spawned task) that awaits it, on the worker that
// runs those turns. Cost: a frame from the block pool, about 10 ns. Tasks that await tasks use no
// stack, however deep the chain is. Errors: when the actor is stopped, the operation that the task
// awaits throws troupe::cancelled. Lifetime: a task that never ran is just destroyed.
//
// GCC 12 destroys objects twice that are held by a temporary closure or aggregate in the same
// expression as a co_await (`co_await f([name]{…})`, `co_await f(Point{…})`). With that compiler,
// name such an object first and move it in, or name the task: `auto t = f([name]{…}); co_await
// std::move(t);`. GCC 12.2 also gives a wrong frame layout to a coroutine that awaits in a
// condition, `if (co_await …)`, and that declares no variable at the top of its body (GCC bug
// 106188). Write `const bool ok = co_await …; if (ok)` instead.
//
// Example:
//     troupe::task<int> half(int n) { co_return n / 2; }
//     troupe::task<> report() { std::cout << co_await half(10) << '\n'; }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(report());
//       rt.run();
//     }
template <class T>
class [[nodiscard]] task {
 public:
  using promise_type = tasks::promise_of<T>;

  task(task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  task& operator=(task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~task() {
    if (handle_) handle_.destroy();
  }

  class awaiter {
   public:
    explicit awaiter(task&& task) noexcept : task_(std::move(task)) {}
    bool await_ready() const noexcept { return false; }
    template <std::derived_from<tasks::promise_base> Promise>
    bool await_suspend(std::coroutine_handle<Promise> parent) noexcept {
      return tasks::run_child(task_.handle_.promise(), parent.promise());
    }
    T await_resume() { return task_.handle_.promise().result.take(); }

   private:
    task task_;
  };
  awaiter operator co_await() && noexcept { return awaiter(std::move(*this)); }

  // Returns the same task with a time limit. After `at_most`, counted from the co_await, the task
  // is cancelled; when it has ended, the co_await throws timed_out, or returns the value if the
  // task still returned one. Works for when_all and when_any as well:
  // `co_await when_all(one(), two()).timeout(span)`.
  task timeout(time_span at_most) &&;

 private:
  friend promise_type;
  friend tasks::task_access;
  explicit task(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

namespace tasks {

template <class T>
task<T> promise_of<T>::get_return_object() noexcept {
  return task<T>(std::coroutine_handle<promise_of>::from_promise(*this));
}
inline task<void> promise_of<void>::get_return_object() noexcept {
  return task<void>(std::coroutine_handle<promise_of>::from_promise(*this));
}

// Access for other parts of the library; not for users.
struct task_access {
  // The type of a task's value.
  template <class Task>
  struct value;
  template <class T>
  struct value<task<T>> {
    using type = T;
  };
  template <class T>
  static coroutine& root(task<T>& task) noexcept {
    return task.handle_.promise();
  }
  template <class T>
  static result_of<T>& result(task<T>& task) noexcept {
    return task.handle_.promise().result;
  }
  // Null for a task that was moved from.
  template <class T>
  static const void* object_before_start(const task<T>& task) noexcept {
    return task.handle_ ? task.handle_.promise().object_before_start() : nullptr;
  }
  // Gives up the ownership of the root, which another object now owns.
  template <class T>
  static void release(task<T>& task) noexcept {
    task.handle_ = nullptr;
  }
  template <class T>
  static task<T> of_root(coroutine& root) noexcept {
    return task<T>(
        std::coroutine_handle<promise_of<T>>::from_promise(static_cast<promise_of<T>&>(root)));
  }
};

template <class T>
void remembered_object::look(const task<T>& argument) noexcept {
  const void* const object = task_access::object_before_start(argument);
  if (object != nullptr &&
      (found_ == nullptr || !is_part_of_current_actor(const_cast<const void*>(found_))))
    found_ = object;
}

// Keeps the callable that makes a task, and its arguments, in a frame around that task, so that
// they live until the task has ended or is destroyed.
template <class T, class Maker, class... Args>
task<T> run_made(Maker make, Args... args) {
  task<T> started = std::invoke(std::move(make), std::move(args)...);
  co_return co_await std::move(started);
}

}  // namespace tasks

}  // namespace troupe
