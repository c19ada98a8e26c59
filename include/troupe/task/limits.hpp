// with_deadline and with_stop: limits for a call and all that it does.
#pragma once

#include <chrono>
#include <concepts>
#include <coroutine>
#include <exception>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "troupe/task/call_context.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/when.hpp"

namespace troupe {

namespace tasks {

// Awaits a task as a branch, in a context of its own.
class limited_branch {
 public:
  limited_branch(coroutine& root, std::chrono::nanoseconds at_most, std::stop_token stop)
      : group_(false), branch_(group_, root), at_most_(at_most), stop_(std::move(stop)) {}
  limited_branch(const limited_branch&) = delete;
  limited_branch& operator=(const limited_branch&) = delete;
  ~limited_branch() { leave(); }

  class awaiter {
   public:
    explicit awaiter(limited_branch& of) noexcept : of_(of) {}
    bool await_ready() const noexcept { return false; }
    template <std::derived_from<promise_base> Promise>
    bool await_suspend(std::coroutine_handle<Promise> who) {
      return of_.suspend(who.promise());
    }
    void await_resume() const noexcept { of_.leave(); }

   private:
    limited_branch& of_;
  };
  // Waits until the task has ended.
  awaiter end() noexcept { return awaiter(*this); }
  // Throws if the limits have ended the task, which threw this.
  void check(const std::exception_ptr& failure) const;

 private:
  bool suspend(coroutine& who);
  void leave() noexcept;

  fixed_group group_;
  branch branch_;
  const std::chrono::nanoseconds at_most_;
  std::stop_token stop_;
  call_context* own_ = nullptr;
  std::exception_ptr over_;
};

template <class T>
task<T> run_within(task<T> of, std::chrono::nanoseconds at_most, std::stop_token stop) {
  limited_branch limits(task_access::root(of), at_most, std::move(stop));
  co_await limits.end();
  limits.check(task_access::result(of).failure());
  co_return task_access::result(of).take();
}

}  // namespace tasks

// co_await with_deadline(span, what): awaits a task, or what else when_all takes, and gives its
// value. After `span`, counted from the co_await, it is cancelled, with all that it has begun: its
// waits, its children, and the handlers of other actors that it asks, with what those ask in turn;
// a blocking function or a lazy sees it by this_call. When it has ended, the co_await throws
// timed_out. Of several deadlines around each other the nearest wins. An ask that is handled after
// its deadline is not run.
//
// Thread: the turns of the actor that awaits it. Cost: about 300 ns. Errors: timed_out when the
// deadline has ended it; a value or another exception that it still gives is given. A `tell` and a
// spawned task are not limited.
//
// Example:
//     struct Store {
//       troupe::task<int> read() {
//         co_await troupe::sleep_for(troupe::this_call::remaining() * 2);
//         co_return 1;
//       }
//     };
//     troupe::task<> use(troupe::ref<Store> store) {
//       try {
//         co_await troupe::with_deadline(std::chrono::milliseconds(5), store.ask<&Store::read>());
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
auto with_deadline(std::chrono::nanoseconds span, Given&& what) {
  if constexpr (tasks::fit_branches<Given>()) {
    return tasks::run_within(tasks::make_branch(std::forward<Given>(what)), span,
                             std::stop_token());
  }
}
// The same for a stop token: when a stop is requested, all that it has begun is cancelled, and the
// co_await throws cancelled.
template <class Given>
auto with_stop(std::stop_token token, Given&& what) {
  if constexpr (tasks::fit_branches<Given>()) {
    return tasks::run_within(tasks::make_branch(std::forward<Given>(what)),
                             std::chrono::nanoseconds::max(), std::move(token));
  }
}

}  // namespace troupe
