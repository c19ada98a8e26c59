// scope_results: a scope whose children all return values of one type.
#pragma once

#include "troupe/base/language.hpp"

#include <algorithm>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/task/groups/scope_group.hpp"
#include "troupe/task/scope.hpp"
#include "troupe/task/task.hpp"

namespace troupe {

// The order of the values in the result of scope_results.
enum class result_order : std::uint8_t { of_start, of_completion };

// As task_scope, for children that all return a T; next() returns their values.
//
// Thread, cost and errors: as task_scope.
//
// Example:
//     troupe::task<int> square(int n) { co_return n * n; }
//     troupe::task<> print() {
//       const std::vector<int> squares =
//           co_await troupe::scope_results<int>([](troupe::results_scope<int>& s) {
//             for (int n = 1; n <= 3; ++n) s.spawn(square(n));
//           });
//       for (const int each : squares) std::cout << each << '\n';
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(print());
//       rt.run();
//     }
template <class T>
class results_scope {
 public:
  static_assert(!std::is_void_v<T>,
                "troupe: scope_results: for children without a value use scope()");

  results_scope() noexcept : group_(true) {}
  results_scope(const results_scope&) = delete;
  results_scope& operator=(const results_scope&) = delete;

  // As in task_scope, without handles.
  template <class... Given>
  void spawn(Given&&... given) {
    add(tasks::make_child(std::forward<Given>(given)...));
  }
  template <class... Given>
  void spawn_parallel(Given&&... given) {
    add(tasks::run_in_parallel(tasks::make_child(std::forward<Given>(given)...)));
  }
  void limit(std::size_t most) { group_.set_limit(most); }
  void cancel() noexcept { group_.cancel(false); }
  std::size_t unfinished() const noexcept { return group_.unfinished(); }

  // co_await s.next(), in the body: the value of one more child, in the order in which they end;
  // no value when no child is left. The result of the scope then lacks this value.
  class next_awaiter {
   public:
    static constexpr bool puts_back = true;  // for the branches of when_any
    explicit next_awaiter(tasks::scope_group& group) noexcept : group_(group) {}
    next_awaiter(next_awaiter&&) = delete;
    ~next_awaiter() {
      if (wait_.got != nullptr) wait_.got->release();
    }
    bool await_ready() const noexcept { return false; }
    template <std::derived_from<tasks::promise_base> Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiting) noexcept {
      return group_.wait_next(wait_, waiting.promise());
    }
    std::optional<T> await_resume() {
      group_.put_back_if_cancelled(wait_);
      wait_.check();
      if (wait_.got == nullptr) return std::nullopt;
      return static_cast<tasks::child_of<T>*>(wait_.got)->result.take();
    }

   private:
    tasks::scope_group& group_;
    tasks::scope_wait wait_;
  };
  class [[nodiscard]] next_child {
   public:
    next_awaiter operator co_await() const noexcept { return next_awaiter(group_); }

   private:
    friend results_scope;
    explicit next_child(tasks::scope_group& group) noexcept : group_(group) {}
    tasks::scope_group& group_;
  };
  next_child next() noexcept { return next_child(group_); }

 private:
  friend tasks::scope_access;
  void add(task<T>&& child) {
    group_.add_child(tasks::child_of<T>::make(group_, std::move(child)));
  }
  tasks::scope_group group_;
};

namespace tasks {

// The children that have ended, and whose values were not taken.
template <class T>
class ended_children {
 public:
  explicit ended_children(scope_group& group) noexcept : first_(group.take_ended()) {}
  ended_children(const ended_children&) = delete;
  ended_children& operator=(const ended_children&) = delete;
  ~ended_children() {
    while (first_ != nullptr) std::exchange(first_, first_->next)->release();
  }
  std::vector<T> take(result_order order) {
    std::vector<scope_child*> all;
    for (scope_child* child = first_; child != nullptr; child = child->next) all.push_back(child);
    if (order == result_order::of_start) std::ranges::sort(all, {}, &scope_child::number);
    std::vector<T> values;
    values.reserve(all.size());
    for (scope_child* const child : all)
      values.push_back(static_cast<child_of<T>*>(child)->result.take());
    return values;
  }

 private:
  scope_child* first_;
};

template <class T, class Body>
task<std::vector<T>> run_results(Body body, result_order order) {
  results_scope<T> s;
  auto all = run_body(s, body, nullptr);
  co_await std::move(all);
  ended_children<T> ended(scope_access::group(s));
  co_return ended.take(order);
}

}  // namespace tasks

// co_await scope_results<T>(body): as scope(body), with a results_scope<T>, for children that all
// return a T. Returns their values, in the order in which the children were added, or in which they
// ended, except for the values that next() has returned.
template <class T, result_order Order = result_order::of_start, class Body>
auto scope_results(Body&& body) {
  if constexpr (tasks::fits_scope<results_scope<T>, Body>()) {
    static_assert(
        std::is_void_v<tasks::body_value<results_scope<T>, std::decay_t<Body>>>,
        "troupe: scope_results: it gives the values of the children; its body gives none");
    return tasks::run_results<T, std::decay_t<Body>>(std::forward<Body>(body), Order);
  }
}

}  // namespace troupe
