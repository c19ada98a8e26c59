// parallel_child: how a child of a scope awaits a task that was spawned, and that must not outlive
// it. For the library's own use; users meet task_scope::spawn_parallel.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <concepts>
#include <coroutine>
#include <stop_token>
#include <tuple>

#include "troupe/task/async_call.hpp"
#include "troupe/task/future.hpp"
#include "troupe/task/shared_state.hpp"
#include "troupe/task/task.hpp"

namespace troupe::tasks {

// The state that the awaiting child and the spawned task share. It lies in the child's frame.
struct parallel_child {
  std::stop_source stop;                      // ends the task
  std::atomic<async_call*> running{nullptr};  // set when it has begun to wait
};

// Awaitable by a class of its own.
template <class Awaiter, class... Args>
class await_by {
 public:
  explicit await_by(Args&... args) noexcept : args_(args...) {}
  Awaiter operator co_await() const noexcept { return std::make_from_tuple<Awaiter>(args_); }

 private:
  std::tuple<Args&...> args_;
};

// Waits as for a future, and leaves the result in it. Throws cancelled, or deadlock.
class parallel_child_result {
 public:
  explicit parallel_child_result(shared_state& state) noexcept : state_(state), wait_(state) {}
  parallel_child_result(parallel_child_result&&) = delete;
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    return state_.resolved() ? suspend_ready(awaiting.promise())
                             : wait_.suspend(awaiting.promise());
  }
  void await_resume() const { wait_.finish(); }

 private:
  shared_state& state_;
  future_wait wait_;
};

// Waits for the end of a task whose stop was requested. Nothing ends this wait early: the task may
// refer to objects that the child's scope keeps.
class parallel_child_end final : public suspension, public observer {
 public:
  parallel_child_end(shared_state& state, parallel_child& task) noexcept
      : suspension(&act_on), observer{&on_resolved}, state_(state), task_(task) {}
  parallel_child_end(parallel_child_end&&) = delete;
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) noexcept {
    return state_.resolved() ? suspend_ready(awaiting.promise()) : suspend(awaiting.promise());
  }
  void await_resume() const noexcept {}

 private:
  friend struct debugger_view;  // src/runtime/debugger_table.cpp
  bool suspend(coroutine& awaiting) noexcept;
  static void on_resolved(observer& self) noexcept;
  static const char* act_on(sched::message*, void*, sched::message_act);
  void finish_task() noexcept;
  shared_state& state_;
  parallel_child& task_;
};

using arrival_of = await_by<parallel_child_result, shared_state>;
using end_of = await_by<parallel_child_end, shared_state, parallel_child>;

}  // namespace troupe::tasks
