// task_scope: tasks that run concurrently and that all have ended when their scope ends.
#pragma once

#include "troupe/base/language.hpp"

#include <algorithm>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/base/error.hpp"
#include "troupe/task/groups/scope_group.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/when.hpp"

namespace troupe {

namespace tasks {

struct scope_access;

// The type in which an argument is kept for a child: a value, and a literal as a string, since a
// coroutine must not refer to a string that was made of it for the call.
template <class Arg>
struct kept_argument {
  using type = std::decay_t<Arg>;
};
template <std::size_t Size>
struct kept_argument<const char (&)[Size]> {
  using type = std::string;
};
template <class Arg>
using kept_as = typename kept_argument<Arg>::type;

template <class Given, class... Args>
auto make_child(Given&& given, Args&&... args) {
  using held = std::remove_cvref_t<Given>;
  constexpr bool is_alone = sizeof...(Args) == 0;
  if constexpr (is_alone && (is_task<held> || awaitable<held>)) {
    static_assert(branch_of<Given>::is_kept,
                  "troupe: task_scope::spawn: a task or a future is given away: "
                  "s.spawn(std::move(the_task))");
    return make_branch(std::forward<Given>(given));
  } else {
    constexpr bool is_called = std::is_invocable_v<std::decay_t<Given>, kept_as<Args>...>;
    static_assert(is_called,
                  "troupe: task_scope::spawn: it takes a task, another awaitable, or a callable "
                  "that makes a task, and its arguments, which are kept by value");
    if constexpr (is_called) {
      using made_task = std::invoke_result_t<std::decay_t<Given>, kept_as<Args>...>;
      static_assert(is_task<made_task>,
                    "troupe: task_scope::spawn: the callable makes no task: let it return "
                    "troupe::task<>");
      if constexpr (is_task<made_task>) {
        return run_made<typename task_access::value<made_task>::type, std::decay_t<Given>,
                        kept_as<Args>...>(std::forward<Given>(given), std::forward<Args>(args)...);
      }
    }
  }
}
template <class... Given>
using child_value =
    typename task_access::value<decltype(make_child(std::declval<Given>()...))>::type;

// Spawns the task, and ends when it has ended (include/troupe/runtime/parallel_scope.hpp).
template <class T>
task<T> run_in_parallel(task<T> given);

}  // namespace tasks

// The scope of some tasks, its children. It ends when all children have ended, so that no child
// outlives the objects to which it refers. `scope` makes a task_scope and passes it to the body.
//
// Thread: only the body and the children may use it, and the children run in the turns of the actor
// that awaits the scope, one at a time, between each other's waits. Cost: about 40 ns for a child
// that never waits, and a block of memory beside its frame. Errors: the first exception of a child
// or of the body cancels all others.
class task_scope {
 public:
  // A child, for code that needs its value. Move-only.
  //
  // Thread: the turns of the scope's actor; when the scope has ended, any one at a time. Lifetime:
  // it may outlive the scope; one that is dropped drops the child's value.
  template <class T>
  class child;

  task_scope() noexcept : group_(false) {}
  task_scope(const task_scope&) = delete;
  task_scope& operator=(const task_scope&) = delete;

  // Adds a child: a task, any other argument that `when_all` takes, or a callable that makes a
  // task. The callable and its arguments are kept until that task has ended; they may refer to
  // objects that outlive the scope. Returns a handle to the child's value.
  //
  // The child begins when the body, or the child that added it, has ended or waits. The children
  // begin in the order of the calls. In a cancelled scope a child never begins. Errors: usage_error
  // if the caller is neither the body nor a child.
  template <class... Given>
  child<tasks::child_value<Given...>> spawn(Given&&... given) {
    using value = tasks::child_value<Given...>;
    auto& started =
        tasks::child_of<value>::make(group_, tasks::make_child(std::forward<Given>(given)...));
    child<value> handle(started);
    group_.add_child(started);
    return handle;
  }

  // Adds a child that is spawned as a task of its own when it begins: such children run in
  // parallel, on all workers. The scope awaits, limits and cancels them like other children, and a
  // deadline around the scope holds for them. They must not use the scope, nor, without a lock,
  // objects that other tasks use. Cost: about 1 us. Errors: as spawn().
  //
  // Example:
  //     troupe::task<int> square(int n) { co_return n * n; }
  //     int main() {
  //       troupe::runtime rt;
  //       troupe::task_scope::child<int> one, two;
  //       troupe::scope(rt, [&](troupe::task_scope& s) {
  //         one = s.spawn_parallel(square(3));
  //         two = s.spawn_parallel(square(4));
  //       });
  //       std::cout << one.get() + two.get() << '\n';
  //     }
  template <class... Given>
  child<tasks::child_value<Given...>> spawn_parallel(Given&&... given) {
    return spawn(tasks::run_in_parallel(tasks::make_child(std::forward<Given>(given)...)));
  }

  // From now on at most this number of children runs at once; the others wait until a child has
  // ended. Errors: usage_error for 0.
  void limit(std::size_t most) { group_.set_limit(most); }

  // Cancels the children: their awaits throw cancelled, the handlers of other actors that they have
  // asked are cancelled as well, and children that have not begun never run. The body continues.
  // This is no failure: the scope ends as if the children had succeeded.
  void cancel() noexcept { group_.cancel(false); }

  // co_await s.next(), in the body: waits until one more child has ended, in the order in which
  // they end. Returns true for each of them, and false when no child is left.
  class next_awaiter {
   public:
    static constexpr bool puts_back = true;  // for the branches of when_any
    explicit next_awaiter(tasks::scope_group& group) noexcept : group_(group) {}
    next_awaiter(next_awaiter&&) = delete;
    bool await_ready() const noexcept { return false; }
    template <std::derived_from<tasks::promise_base> Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiting) noexcept {
      return group_.wait_next(wait_, waiting.promise());
    }
    bool await_resume() {
      group_.put_back_if_cancelled(wait_);
      wait_.check();
      return wait_.has_ended;
    }

   private:
    tasks::scope_group& group_;
    tasks::scope_wait wait_;
  };
  class [[nodiscard]] next_child {
   public:
    next_awaiter operator co_await() const noexcept { return next_awaiter(group_); }

   private:
    friend task_scope;
    explicit next_child(tasks::scope_group& group) noexcept : group_(group) {}
    tasks::scope_group& group_;
  };
  next_child next() noexcept { return next_child(group_); }

  // How many children have not ended.
  std::size_t unfinished() const noexcept { return group_.unfinished(); }

 private:
  friend tasks::scope_access;
  tasks::scope_group group_;
};

template <class T>
class task_scope::child {
 public:
  child() = default;
  child(child&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  child& operator=(child other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~child() {
    if (state_ != nullptr) state_->release();
  }

  // Whether it refers to a child whose value was not taken.
  bool valid() const noexcept { return state_ != nullptr; }
  // Whether the child has ended.
  bool done() const noexcept { return state_ != nullptr && state_->done; }

  // Takes the value of a child that has ended, or throws its exception. Errors: usage_error if the
  // child has not ended; the handle is then unchanged.
  T get() {
    if (!done())
      throw usage_error(
          "troupe: task_scope::child: the child has not ended: co_await it, or call get() when its "
          "scope has ended");
    const child taken = std::move(*this);
    return taken.state_->result.take();
  }

  class awaiter {
   public:
    explicit awaiter(child&& awaited) noexcept : awaited_(std::move(awaited)) {}
    awaiter(awaiter&&) = delete;
    bool await_ready() const noexcept { return false; }
    template <std::derived_from<tasks::promise_base> Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiting) {
      return static_cast<tasks::scope_group&>(awaited_.state_->owner)
          .wait_for(wait_, *awaited_.state_, waiting.promise());
    }
    T await_resume() {
      wait_.check();
      return awaited_.get();
    }

   private:
    child awaited_;
    tasks::scope_wait wait_;
  };
  // Waits until the child has ended, and takes its value or throws its exception, once.
  awaiter operator co_await() {
    if (state_ == nullptr)
      throw usage_error(
          "troupe: task_scope::child: it refers to no child, or was awaited already; await each "
          "child once");
    return awaiter(std::move(*this));
  }

 private:
  friend task_scope;
  explicit child(tasks::child_of<T>& state) noexcept : state_(&state) { ++state.refs; }
  tasks::child_of<T>* state_ = nullptr;
};

namespace tasks {

struct scope_access {
  template <class Scope>
  static scope_group& group(Scope& scope) noexcept {
    return scope.group_;
  }
};

// Reports all failures to the caller that asked for them, before the first one is thrown.
class failure_report {
 public:
  failure_report(scope_group& group, std::vector<std::exception_ptr>* failures) noexcept
      : group_(group), failures_(failures) {
    if (failures != nullptr) group.tell_all();
  }
  failure_report(const failure_report&) = delete;
  ~failure_report() {
    if (failures_ != nullptr)
      static_cast<void>(failure_of([this] { *failures_ = group_.failures(); }));
  }

 private:
  const scope_group& group_;
  std::vector<std::exception_ptr>* failures_;
};

template <class Scope, class Body>
using body_result = std::invoke_result_t<Body&, Scope&>;
template <class Result>
struct value_of_body {
  using type = Result;
};
template <class T>
struct value_of_body<task<T>> {
  using type = T;
};
template <class Scope, class Body>
using body_value = typename value_of_body<body_result<Scope, Body>>::type;

// Runs the body and awaits the children.
template <class Scope, class Body>
task<body_value<Scope, Body>> run_body(Scope& s, Body& body,
                                       std::vector<std::exception_ptr>* failures) {
  scope_group& all = scope_access::group(s);
  failure_report report(all, failures);
  if constexpr (is_task<body_result<Scope, Body>>) {
    auto main = body(s);
    scope_body as_child(all, main);
    co_await scope_join(all, &as_child);
    co_return task_access::result(main).take();
  } else if constexpr (std::is_void_v<body_result<Scope, Body>>) {
    body(s);
    co_await scope_join(all, nullptr);
  } else {
    auto value = body(s);
    co_await scope_join(all, nullptr);
    co_return value;
  }
}

template <class Body>
task<body_value<task_scope, Body>> run_scope(Body body, std::vector<std::exception_ptr>* failures) {
  task_scope s;
  auto all = run_body(s, body, failures);
  co_return co_await std::move(all);
}

template <class Scope, class Body>
consteval bool fits_scope() {
  constexpr bool is_called = std::is_invocable_v<std::decay_t<Body>&, Scope&>;
  static_assert(is_called,
                "troupe: scope: its body is a callable with the scope: "
                "scope([&](troupe::task_scope& s) { s.spawn(...); })");
  return is_called;
}

}  // namespace tasks

// co_await scope(body): calls `body(s)` with a new task_scope, and ends when the body and all
// children have ended. Returns the body's value. The body is a procedure that adds children, or a
// coroutine that returns a task and may wait beside them.
//
// Thread: body and children run in the turns of the actor that awaits it. Errors: the first
// exception that a child or the body throws cancels all others, and is thrown when they have ended;
// `failures`, if it is given, then has all exceptions, in the order of time. Throws cancelled when
// the task that awaits the scope is cancelled, and so are all children. Lifetime: a scope that is
// never awaited never runs; the body is kept until the scope has ended, and the objects to which it
// refers must live as long.
//
// Example:
//     troupe::task<> fetch(int n, int& sum) {
//       co_await troupe::sleep_for(std::chrono::milliseconds(n));
//       sum += n;
//     }
//     troupe::task<> fetch_all() {
//       int sum = 0;
//       co_await troupe::scope([&](troupe::task_scope& s) {
//         for (int n = 1; n <= 3; ++n) s.spawn(fetch(n, sum));
//       });
//       std::cout << sum << '\n';
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(fetch_all());
//       rt.run();
//     }
template <class Body>
auto scope(Body&& body) {
  if constexpr (tasks::fits_scope<task_scope, Body>()) {
    return tasks::run_scope<std::decay_t<Body>>(std::forward<Body>(body), nullptr);
  }
}
template <class Body>
auto scope(std::vector<std::exception_ptr>& failures, Body&& body) {
  if constexpr (tasks::fits_scope<task_scope, Body>()) {
    return tasks::run_scope<std::decay_t<Body>>(std::forward<Body>(body), &failures);
  }
}

}  // namespace troupe
