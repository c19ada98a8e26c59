// when_all and when_any: several tasks side by side, in the turns of one actor.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "troupe/task/flow.hpp"
#include "troupe/task/future.hpp"
#include "troupe/task/task.hpp"

namespace troupe {

namespace tasks {

class group;

// One of the tasks: a flow of its own, so that it can be cancelled without the others.
struct branch final : flow {
  branch(group& within, coroutine& task);
  group& of;
  coroutine& root;
};

// Of groups within groups that are started, or cancelled, each by the one around it: those deeper than the stack should be wait
// here for the outermost.
struct group_nest {
  static constexpr unsigned depth_max = 16;
  unsigned depth = 0;
  group* later = nullptr;
  group** later_end = &later;
};

// The wait of the one who awaits them all. It is over when all have ended: of when_any's, too, whose losers are
// cancelled as soon as there is a winner.
class group final : public wait {
 public:
  explicit group(bool first_only) noexcept : wait(&act_on), first_only_(first_only) {}
  // False when all are done already. `branches` live as long as the group.
  bool start(coroutine& who, std::span<branch> branches) noexcept;
  std::size_t winner() const noexcept { return winner_; }

 private:
  static const char* act_on(sched::message*, void*, sched::message_act);
  static const char* resume_branch(flow& of) noexcept;
  static group* around(const flow& of) noexcept;
  template <class Act>
  void nest(group_nest* group::*at, Act act) noexcept;
  void start_all() noexcept;
  void cancel_all() noexcept;
  void run(branch& one) noexcept;
  bool count_done(branch& one) noexcept;  // true for the first
  flow* end_if_done() noexcept;
  void go_on_if_done() noexcept;

  home at_{};
  std::span<branch> branches_;
  std::size_t left_ = 0, winner_ = SIZE_MAX;
  group_nest *starts_ = nullptr, *cancels_ = nullptr;  // while it does so
  group* next_later_ = nullptr;
  const bool first_only_;
  bool suspended_ = false, is_later_ = false;
};

// Awaits the branches of the tasks; each keeps its result in its own promise.
class group_awaiter {
 public:
  group_awaiter(bool first_only, std::span<coroutine* const> roots);
  group_awaiter(group_awaiter&&) = delete;
  bool await_ready() const noexcept { return branches_.empty(); }
  template <std::derived_from<promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> who) noexcept {
    return group_.start(who.promise(), branches_);
  }
  std::size_t await_resume() const noexcept { return group_.winner(); }
  ~group_awaiter();

 private:
  group group_;
  std::span<branch> branches_;
};
class join {
 public:
  join(bool first_only, std::span<coroutine* const> roots) noexcept : first_only_(first_only), roots_(roots) {}
  group_awaiter operator co_await() const { return group_awaiter(first_only_, roots_); }

 private:
  bool first_only_;
  std::span<coroutine* const> roots_;
};

template <class T>
using value_of = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <class T>
value_of<T> take_value(task<T>& of) {
  if constexpr (std::is_void_v<T>) {
    task_access::result(of).take();
    return {};
  } else {
    return task_access::result(of).take();
  }
}

}  // namespace tasks

// Runs the tasks side by side, in the turns of the actor that awaits this, and gives all their values (std::monostate for
// void) when the last one has ended. If some throw, the exception of the first of them, in the order given, is thrown then.
//
// Example:
//     troupe::task<int> number(int n) { co_await troupe::sleep_for(std::chrono::milliseconds(1)); co_return n; }
//     troupe::task<> use() {
//       auto [one, two] = co_await troupe::when_all(number(1), number(2));
//       std::cout << one + two << '\n';
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(use());
//       rt.run();
//     }
template <class... T>
task<std::tuple<tasks::value_of<T>...>> when_all(task<T>... all) {
  tasks::coroutine* const roots[] = {&tasks::task_access::root(all)..., nullptr};
  const std::span<tasks::coroutine* const> those(roots, sizeof...(T));
  co_await tasks::join(false, those);
  co_return std::tuple<tasks::value_of<T>...>{tasks::take_value(all)...};
}
template <class T>
task<std::vector<tasks::value_of<T>>> when_all(std::vector<task<T>> all) {
  std::vector<tasks::coroutine*> roots;
  for (auto& one : all) roots.push_back(&tasks::task_access::root(one));
  co_await tasks::join(false, roots);
  std::vector<tasks::value_of<T>> values;
  for (auto& one : all) values.push_back(tasks::take_value(one));
  co_return values;
}

// Runs the tasks side by side until the first has ended: by a value, which is given with its index, or by an exception,
// which is thrown. The others are cancelled, and have ended when this goes on.
template <class... T>
task<std::variant<tasks::value_of<T>...>> when_any(task<T>... all) {
  tasks::coroutine* const roots[] = {&tasks::task_access::root(all)...};
  const std::size_t winner = co_await tasks::join(true, roots);
  std::optional<std::variant<tasks::value_of<T>...>> value;
  std::tuple<task<T>&...> each(all...);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((winner == I ? static_cast<void>(value.emplace(std::in_place_index<I>, tasks::take_value(std::get<I>(each)))) : void()), ...);
  }(std::index_sequence_for<T...>{});
  co_return std::move(*value);
}
template <class T>
task<std::pair<std::size_t, tasks::value_of<T>>> when_any(std::vector<task<T>> all) {
  if (all.empty()) throw usage_error("troupe: when_any: of no task none is ever done");
  std::vector<tasks::coroutine*> roots;
  for (auto& one : all) roots.push_back(&tasks::task_access::root(one));
  const std::size_t winner = co_await tasks::join(true, roots);
  co_return std::pair<std::size_t, tasks::value_of<T>>{winner, tasks::take_value(all[winner])};
}

// A future as a task, for when_all and when_any.
template <class T>
task<T> as_task(future<T> of) {
  co_return co_await std::move(of);
}

}  // namespace troupe
