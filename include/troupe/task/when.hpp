// when_all and when_any: several tasks that run concurrently, in the turns of one actor.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
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

#include "troupe/base/intrusive_list.hpp"
#include "troupe/base/time_span.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/future.hpp"
#include "troupe/task/groups/foreign_wait.hpp"
#include "troupe/task/groups/race.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/timer.hpp"

namespace troupe {

namespace tasks {

class group;
class side_run;
class waiting_scopes;

// One of the tasks of a group: an async call of its own, so that it can be cancelled without the
// others. `link` links the branches of a group.
struct branch : async_call {
  branch(group& within, coroutine& task);
  group& owner;
  coroutine& root;
  // Its name from with_span, or the name of the outermost branch around it that has a name: the
  // time of its turns is shown under the time of the handler. Null for most.
  const char* span = nullptr;
};

// For groups within groups, each started or cancelled by the group around it. Groups nested deeper
// than the stack should be wait here for the outermost group.
struct group_nest {
  static constexpr unsigned depth_max = 16;
  unsigned depth = 0;
  group* later = nullptr;
  group** later_end = &later;
};

// The lists by which others will still act on a group: it ends only when it is in none of them.
class group_lists {
 public:
  enum class list : std::uint8_t {
    later = 1,   // of a group_nest
    scopes = 2,  // a scope that waits for its turn to start children (waiting_scopes)
  };
  bool has(list which) const noexcept { return (joined_ & bit_of(which)) != 0; }
  bool is_empty() const noexcept { return joined_ == 0; }
  void join(list which) noexcept { joined_ = static_cast<std::uint8_t>(joined_ | bit_of(which)); }
  void leave(list which) noexcept { joined_ = static_cast<std::uint8_t>(joined_ & ~bit_of(which)); }

 private:
  static constexpr std::uint8_t bit_of(list which) noexcept {
    return static_cast<std::uint8_t>(which);
  }
  std::uint8_t joined_ = 0;
};

// The suspension of a coroutine that awaits several tasks, which run in the turns of its actor. It
// ends when all of its branches have ended. A kind of group decides when its branches start, and
// how the end of a branch affects the others.
// Invariants
//   H1  Branches are held for a group only after it has moved something. Such a hold ends once, and
//       is not begun again.
class group : public suspension {
 public:
  // The suspension as a group; null for other suspensions.
  static const group* of(const suspension& wait) noexcept {
    return wait.act == &act_on ? static_cast<const group*>(&wait) : nullptr;
  }
  // Calls `look` for each branch that has not ended.
  template <class Look>
  void for_each_unfinished(Look look) const {
    for (const async_call& call : branches_) {
      if (!call.done) look(static_cast<const branch&>(call));
    }
  }
  // The call that awaits the group, and the groups around it. Only after the start.
  async_call& root() const noexcept { return *root_; }
  // Whether the end of one branch ends the others.
  bool first_only() const noexcept { return kind_.first_only; }
  // The coroutine that awaits the group of which this async call is a branch; null if it is not a
  // branch.
  static coroutine* awaits(const async_call& branch) noexcept {
    const group* const all = around(branch);
    return all == nullptr ? nullptr : all->waiter;
  }
  // The wait of `arrived` has ended, and its value is not taken. If the coroutine is the task of a
  // branch of a when_any, the branch wins, unless another has. If branches that have lost have not
  // ended, it begins a wait until they have, which the caller drops; otherwise it returns null.
  static suspension* win_before_taking(coroutine& arrived) noexcept;
  static void drop_winner_wait(suspension* ended) noexcept;
  // If the call is a branch that has lost, its result is dropped, and that is reported.
  static void tell_if_lost(const async_call& branch, const char* name) noexcept;

 protected:
  // The operations in which kinds of groups differ. Called in turns of the actor.
  struct kind {
    const char* name;  // the name of the wait in a report
    bool first_only;
    void (*start)(group&) noexcept;           // starts the branches
    void (*ended)(group&, branch&) noexcept;  // a branch has ended
    void (*cancel)(group&) noexcept;
    void (*reclaim)(group&) noexcept;  // runs all branches to their ends, as async_call::finish_now
  };
  explicit group(const kind& given) noexcept : suspension(&act_on), kind_(given) {
    is_final = true;
  }
  static bool has_kind(const group& candidate, const kind& wanted, const kind& other) noexcept {
    return &candidate.kind_ == &wanted || &candidate.kind_ == &other;
  }

  // Begins the wait: starts the branches. Returns false if all have ended already.
  bool start(coroutine& awaiting) noexcept;
  // The branch runs in the group from now on.
  void add(branch& child) noexcept;
  void remove(branch& child) noexcept;
  void prepare_branch(branch& prepared, bool as_cancelled) noexcept;
  void start_branch(branch& child, bool as_cancelled) noexcept;
  // Instead of start_branch: it begins when the branch whose send has happened has run.
  void postpone_branch(branch& branch) noexcept;
  void run(branch& branch) noexcept;
  void cancel_branch(branch& branch) noexcept;
  // Calls `act` for this group now, or after the groups that are being started or cancelled around
  // it.
  template <class Act>
  void nest(group_nest* group::*at, Act act) noexcept;
  // The last touch of the group. Returns the call that must be resumed, unless that call is running
  // now.
  async_call* end_if_done() noexcept;
  void go_on_if_done() noexcept;
  // The winner that waits in win_before_taking(), made ready, if all that have lost have ended.
  branch* winner_to_go_on() noexcept;
  // A group within the race may have moved something: settle_race() looks for it.
  void must_settle_race() noexcept { static_cast<own_race&>(*race_).must_settle = true; }
  // At the end of a run, before competitors resume: no send of the race happens while a group
  // within it has moved something.
  static void settle_race(race& this_race) noexcept;
  // The same within a run, which settles it at its end.
  static void keep_race(race& this_race) noexcept;
  bool owns_race() const noexcept { return race_ == &own_race_; }
  // Whether a branch beside it has begun and has not ended.
  bool has_others(const branch& winner) const noexcept;
  // Prevents the event for which the branch waits from now on, if the event could not be undone.
  // False: a part of it has happened, and its end is on its way.
  static bool pause(branch& child) noexcept;
  static void resume(branch& child, const suspension* end) noexcept;  // before `end`; null: all
  // The group of which the call is a branch; null if it is none.
  static group* around(const async_call& call) noexcept;
  // The call that awaits the group that the coroutine begins to await, and the groups around that.
  static async_call& root_of(const coroutine& awaiting) noexcept;

  call_host at_{};
  async_call* root_ = nullptr;
  using branches = base::intrusive_list<async_call, &async_call::link>;
  branches branches_;
  std::size_t left_ = 0;  // branches that have not ended
  // not null while it starts or cancels its branches
  group_nest *starts_ = nullptr, *cancels_ = nullptr;
  bool suspended_ = false;
  bool is_decided_ = false;  // one branch has ended first, and the others are cancelled
  bool has_held_ = false;    // a branch within it may be held
  // The first branch has ended with a value that cannot be put back, and others have not ended.
  // Then the branches beside this group in the groups around it do not run (holds) until this group
  // has ended, or it may lose the value that it has moved (released).
  enum class moved : std::uint8_t { nothing, holds, released };
  moved moved_ = moved::nothing;
  void note_moved() noexcept {
    if (moved_ == moved::nothing) moved_ = moved::holds;
  }
  using list = group_lists::list;
  group_lists lists_;
  // The race of the outermost when_any around it, or its own; null: there is none.
  race* race_ = nullptr;
  // Where the winner waits for those that have lost; null: it does not.
  struct winner_wait;
  winner_wait* winner_waits_ = nullptr;
  // Ends the hold of the branches beside it, if it has moved something and a loser of its waits for
  // something foreign; null: none has had to be held for that.
  struct hold_limit;
  hold_limit* hold_limit_ = nullptr;

 private:
  friend side_run;
  friend class waiting_scopes;
  friend struct debugger_view;  // src/runtime/debugger_table.cpp
  static const char* act_on(sched::message*, void*, sched::message_act);
  static const char* resume_branch(async_call& call) noexcept;
  // The same; `is_paused`: its competitors are paused already.
  static const char* resume_in_race(branch& child, bool is_paused) noexcept;
  // Pauses the competitors of the branch, in all groups around it. Where a wait has happened that
  // must run first, it pauses nothing, and returns the group of that wait.
  static group* pause_beside(branch& child) noexcept;
  // While a branch runs, it may end and win: no send of its competitors may happen meanwhile. A
  // competitor whose send has happened before wins, if the send was its last operation. The branch
  // is then held until that competitor has run, although the branch was woken first, and this
  // returns true. (docs/protocols/given_up_waits.md)
  static bool pause_beside_or_hold(branch& candidate) noexcept;
  // After the run, for the groups within `end`; for all if that is null. `child`, a branch of
  // `all`, may be gone.
  static void resume_beside(group& all, const branch& child, const group* end) noexcept;
  // Whether the branch may still win.
  bool is_open_to(const branch& branch) const noexcept {
    return first_only() && !is_decided_ && !branch.cancelled;
  }
  bool pause_all_but(const branch& child) noexcept;
  void resume_all_but(const branch& child, const branch* end) noexcept;
  template <class Look>
  static bool for_each_final(branch& child, Look look) noexcept;
  // Whether the branches beside it are held for it.
  bool holds() noexcept;
  void end_hold() noexcept;
  void end_hold_limit() noexcept;
  void release() noexcept;
  bool waits_for_foreign() const noexcept;
  static bool waits_for_foreign(const group& all, unsigned& left) noexcept;
  // Whether a group within the branch has moved something, and waits for the end of others.
  static bool has_moved_in(branch& child) noexcept;
  branch* find_held() noexcept;
  friend race* race_around(const async_call& call) noexcept;
  friend void look_again(race& this_race) noexcept;
  // As pause and resume of all that the branches wait for, and that no branch keeps paused.
  void look_again_inside() noexcept;
  // A held branch of this group, or of those around it, that may run now.
  branch* next_held() noexcept;

  struct own_race : race {
    explicit own_race(group& racing) noexcept : owner(racing) {}
    bool must_settle = false;  // a group within may have moved something
    bool is_kept = false;      // entered, because one has
    // Messages for side calls whose users are held; linked by their `next`.
    suspension* kept = nullptr;
    group& owner;
  };
  // When a branch of its race has run, or the race ends: the messages are handled, unless the users
  // are still held. Only of the race's owner.
  void deliver_kept() noexcept;

  const kind& kind_;
  own_race own_race_{*this};
  group* next_later_ = nullptr;
};

// The tasks of a when_any: drop(all, place, has_lost) destroys a task that has lost, or has won
// with an exception, as soon as it has ended: no generator that lies in it takes a value while the
// others end.
struct droppable_tasks {
  void* all = nullptr;
  void (*drop)(void* all, std::size_t place, bool has_lost) noexcept = nullptr;
};

// The group of when_all and when_any. when_any cancels the other branches as soon as one has ended.
class fixed_group final : public group {
 public:
  explicit fixed_group(bool first_only, droppable_tasks tasks = {}) noexcept
      : group(first_only ? first_kind : all_kind), tasks_(tasks) {}
  // Returns false if all branches are already done. `branches` must live as long as the group.
  bool start(coroutine& awaiting, std::span<branch> branches) noexcept;
  std::size_t winner() const noexcept { return winner_; }

 private:
  friend group;
  static const kind all_kind, first_kind;
  static bool is_fixed(const group& candidate) noexcept {
    return has_kind(candidate, all_kind, first_kind);
  }
  static fixed_group& as_this(group& base) noexcept { return static_cast<fixed_group&>(base); }
  void start_all() noexcept;
  void cancel_all() noexcept;
  void cancel_losers() noexcept;
  void skip(branch& branch) noexcept;
  void cancel_unless_postponed(branch& branch) noexcept;
  void settle_before_cancel() noexcept;
  bool count_done(branch& child) noexcept;  // returns true for the first branch that is done
  void drop_if_unneeded(branch& child) noexcept;
  bool decide(branch& winner) noexcept;
  void decide_around() noexcept;
  fixed_group* decided_around() const noexcept;
  void mark_moved(const branch& winner) noexcept;
  bool win(branch& winner) noexcept;
  void reclaim_all() noexcept;

  std::span<branch> branches_;
  std::size_t winner_ = SIZE_MAX;
  const droppable_tasks tasks_;
};

// Awaits the branches of the tasks; each task keeps its result in its own promise.
class group_awaiter {
 public:
  group_awaiter(bool first_only, std::span<coroutine* const> roots, droppable_tasks tasks);
  group_awaiter(group_awaiter&&) = delete;
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) noexcept {
    return group_.start(awaiting.promise(), branches_);
  }
  std::size_t await_resume() const noexcept { return group_.winner(); }
  ~group_awaiter();

 private:
  fixed_group group_;
  std::span<branch> branches_;
};
class join {
 public:
  join(bool first_only, std::span<coroutine* const> roots, droppable_tasks tasks = {}) noexcept
      : first_only_(first_only), roots_(roots), tasks_(tasks) {}
  group_awaiter operator co_await() const { return group_awaiter(first_only_, roots_, tasks_); }

 private:
  bool first_only_;
  std::span<coroutine* const> roots_;
  droppable_tasks tasks_;
};

template <class T>
using value_of = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <class T>
value_of<T> take_value(task<T>& ended) {
  if constexpr (std::is_void_v<T>) {
    task_access::result(ended).take();
    return {};
  } else {
    return task_access::result(ended).take();
  }
}

template <class Awaitable>
concept awaitable = requires(Awaitable&& awaited) {
  { awaiter_of(std::forward<Awaitable>(awaited)).await_ready() } -> std::convertible_to<bool>;
  awaiter_of(std::forward<Awaitable>(awaited)).await_resume();
};
template <class T>
using value_or_lvalue =
    std::conditional_t<std::is_lvalue_reference_v<T>, T, std::remove_cvref_t<T>>;

// The task that when_all and when_any make from an argument.
template <class Given>
struct branch_of {
  using held = std::remove_cvref_t<Given>;
  static constexpr bool is_kept =
      std::is_constructible_v<held, Given> && std::is_move_constructible_v<held>;
  static constexpr bool can_be_awaited = awaitable<held>;
  static constexpr bool is_fit = is_kept && can_be_awaited;
};
template <class Given>
requires(branch_of<Given>::is_fit) using awaited_value = value_or_lvalue<
    decltype(awaiter_of(std::declval<std::remove_cvref_t<Given>>()).await_resume())>;

template <class Awaitable>
task<awaited_value<Awaitable>> await_it(Awaitable awaited) {
  co_return co_await std::move(awaited);
}

// co_await it: whether the task is being cancelled, by its actor's stop or the runtime's end.
class being_cancelled {
 public:
  being_cancelled() noexcept {}
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<tasks::promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> waiting) noexcept {
    cancelled_ = waiting.promise().call->cancelled;
    return false;
  }
  bool await_resume() const noexcept { return cancelled_; }

 private:
  bool cancelled_ = false;
};

// co_await it between the end of a task's wait and the taking of its value. The task of a branch
// wins here, and its value can still be put back while the branches that have lost end
// (docs/protocols/given_up_waits.md). Elsewhere it does nothing.
class before_taking {
 public:
  before_taking() noexcept {}
  before_taking(before_taking&& other) noexcept : wait_(std::exchange(other.wait_, nullptr)) {}
  ~before_taking() {
    if (wait_ != nullptr) [[unlikely]]
      group::drop_winner_wait(wait_);
  }
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> waits) noexcept {
    wait_ = group::win_before_taking(waits.promise());
    return wait_ != nullptr;
  }
  // Whether it suspended.
  bool await_resume() const noexcept { return wait_ != nullptr; }

 private:
  suspension* wait_ = nullptr;
};

// An awaiter whose await_resume(), in a call that is cancelled, puts the value back.
template <class Awaiter>
concept puts_back = requires {
  requires std::remove_cvref_t<Awaiter>::puts_back;
};
// Such an awaiter that has to know if its await_resume() comes later than its value did.
template <class Awaiter>
concept takes_late = requires(std::remove_cvref_t<Awaiter>& awaiter, coroutine& user) {
  awaiter.take_late(user);
};
// The wait of an awaiter, without its await_resume().
template <class Awaiter>
class arrival {
 public:
  explicit arrival(Awaiter& awaiter) noexcept : awaiter_(awaiter) {}
  bool await_ready() const { return awaiter_.await_ready(); }
  template <std::derived_from<promise_base> Promise>
  decltype(auto) await_suspend(std::coroutine_handle<Promise> waits) {
    return awaiter_.await_suspend(waits);
  }
  void await_resume() const noexcept {
    if constexpr (requires { awaiter_.end_wait(); }) awaiter_.end_wait();
  }

 private:
  Awaiter& awaiter_;
};
class this_coroutine {
 public:
  this_coroutine() noexcept {}
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> waits) noexcept {
    self_ = &waits.promise();
    return false;
  }
  coroutine& await_resume() const noexcept { return *self_; }

 private:
  coroutine* self_ = nullptr;
};
template <class Awaitable>
decltype(auto) begin_awaiter(Awaitable& awaited, [[maybe_unused]] coroutine* user) {
  if constexpr (runs_before_suspension<Awaitable>) {
    return awaited.run_before_suspension(*user);
  } else {
    return awaiter_of(std::move(awaited));
  }
}
template <class Awaitable>
using begun_awaiter =
    decltype(begin_awaiter(std::declval<Awaitable&>(), std::declval<coroutine*>()));
template <class Awaitable>
requires(puts_back<begun_awaiter<Awaitable>>) task<awaited_value<Awaitable>> await_it(
    Awaitable awaited) {
  coroutine* self = nullptr;
  if constexpr (runs_before_suspension<Awaitable>) self = &co_await this_coroutine();
  begun_awaiter<Awaitable> awaiter = begin_awaiter(awaited, self);
  co_await arrival(awaiter);
  const bool is_late = co_await before_taking();
  if constexpr (takes_late<begun_awaiter<Awaitable>>) {
    if (is_late) [[unlikely]]
      awaiter.take_late(co_await this_coroutine());
  }
  co_return awaiter.await_resume();
}
// An awaitable whose result cannot be put back, and may come although its call is cancelled: if its
// branch has lost, that is reported.
template <class Awaitable>
concept tells_loss = requires {
  { Awaitable::lost_as } -> std::convertible_to<const char*>;
};
class tell_if_lost {
 public:
  explicit tell_if_lost(const char* name) noexcept : name_(name) {}
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<promise_base> Promise>
  bool await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
    group::tell_if_lost(*ended.promise().call, name_);
    return false;
  }
  void await_resume() const noexcept {}

 private:
  const char* name_;
};
template <class Awaitable>
requires(tells_loss<Awaitable>) task<awaited_value<Awaitable>> await_it(Awaitable awaited) {
  if constexpr (std::is_void_v<awaited_value<Awaitable>>) {
    co_await std::move(awaited);
    co_await tell_if_lost(Awaitable::lost_as);
  } else {
    awaited_value<Awaitable> value = co_await std::move(awaited);
    co_await tell_if_lost(Awaitable::lost_as);
    co_return std::move(value);
  }
}
template <class Given>
auto make_branch(Given&& given) {
  if constexpr (is_task<std::remove_cvref_t<Given>>) {
    return std::remove_cvref_t<Given>(std::forward<Given>(given));
  } else if constexpr (requires { std::forward<Given>(given).as_task(); }) {
    return std::forward<Given>(given).as_task();
  } else {
    return await_it<std::remove_cvref_t<Given>>(std::forward<Given>(given));
  }
}

// Prints one compile error that names the fault of the arguments.
template <class... Given>
consteval bool fit_branches() {
  constexpr bool calls = ((!branch_of<Given>::can_be_awaited && makes_task<Given>) || ...);
  constexpr bool can_be_awaited = (branch_of<Given>::can_be_awaited && ...),
                 are_kept = (branch_of<Given>::is_kept && ...);
  static_assert(!calls,
                "troupe: when_all and when_any: a lambda or function that makes a task is not "
                "called here: give them its task, by a call "
                "of it, whose captures live until it has ended (name the lambda before)");
  static_assert(
      calls || can_be_awaited,
      "troupe: when_all and when_any: they take awaitables: tasks, futures (asks), sleep_for, I/O");
  static_assert(!can_be_awaited || are_kept,
                "troupe: when_all and when_any: they take a task, a future or a vector of them "
                "away: give it with std::move. An argument that can be neither copied nor moved is "
                "awaited in a task of its own");
  return can_be_awaited && are_kept;
}

// Awaitables of which when_any lets only one ever happen: the cases of select() (sync/select.hpp),
// which specializes this.
template <class... Given>
struct joint_wait;
template <class... Given>
concept has_joint_wait = requires {
  typename joint_wait<Given...>::awaited;
};

template <class... T>
task<std::tuple<value_of<T>...>> all_of(task<T>... all) {
  coroutine* const roots[] = {&task_access::root(all)..., nullptr};
  const std::span<coroutine* const> those(roots, sizeof...(T));
  co_await join(false, those);
  co_return std::tuple<value_of<T>...>{take_value(all)...};
}
template <class T>
task<std::vector<value_of<T>>> all_of(std::vector<task<T>> all) {
  std::vector<coroutine*> roots;
  for (auto& branch_task : all) roots.push_back(&task_access::root(branch_task));
  co_await join(false, roots);
  std::vector<value_of<T>> values;
  for (auto& branch_task : all) values.push_back(take_value(branch_task));
  co_return values;
}
// The tasks of a when_any, and the exception of the winner, whose task is destroyed then.
template <class Tasks>
struct first_of {
  Tasks each;
  untaken_error failure{};
  template <class T>
  void drop(task<T>& ended, bool has_lost) noexcept {
    if (!has_lost) {
      if (!task_access::result(ended).failed()) return;
      failure.set(task_access::result(ended).take_failure());
    }
    const task<T> gone = std::move(ended);
  }
  void check() {
    if (failure.there()) std::rethrow_exception(failure.take());
  }
};
template <class... T>
droppable_tasks droppable(first_of<std::tuple<task<T>&...>>& all) noexcept {
  return {
      &all, [](void* those, std::size_t place, bool has_lost) noexcept {
        auto& from = *static_cast<first_of<std::tuple<task<T>&...>>*>(those);
        std::size_t at = 0;
        std::apply(
            [&](task<T>&... each) { ((at++ == place ? from.drop(each, has_lost) : void()), ...); },
            from.each);
      }};
}
template <class T>
droppable_tasks droppable(first_of<std::vector<task<T>>&>& all) noexcept {
  return {&all, [](void* those, std::size_t place, bool has_lost) noexcept {
            auto& from = *static_cast<first_of<std::vector<task<T>>&>*>(those);
            from.drop(from.each[place], has_lost);
          }};
}
template <class... T>
task<std::variant<value_of<T>...>> any_of(task<T>... all) {
  coroutine* const roots[] = {&task_access::root(all)...};
  first_of<std::tuple<task<T>&...>> those{{all...}};
  const std::size_t winner = co_await join(true, roots, droppable(those));
  those.check();
  std::optional<std::variant<value_of<T>...>> value;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((winner == I ? static_cast<void>(
                        value.emplace(std::in_place_index<I>, take_value(std::get<I>(those.each))))
                  : void()),
     ...);
  }
  (std::index_sequence_for<T...>{});
  co_return std::move(*value);
}
template <class T>
task<std::pair<std::size_t, value_of<T>>> any_of(std::vector<task<T>> all) {
  if (all.empty())
    throw usage_error(
        "troupe: when_any: without a task it would never end; give it at least one task");
  std::vector<coroutine*> roots;
  for (auto& branch_task : all) roots.push_back(&task_access::root(branch_task));
  first_of<std::vector<task<T>>&> those{all};
  const std::size_t winner = co_await join(true, roots, droppable(those));
  those.check();
  co_return std::pair<std::size_t, value_of<T>>{winner, take_value(all[winner])};
}
template <class Awaitable>
auto make_branches(std::vector<Awaitable> all) {
  if constexpr (is_task<Awaitable>) {
    return all;
  } else {
    std::vector<decltype(make_branch(std::declval<Awaitable>()))> branches;
    branches.reserve(all.size());
    for (auto&& awaitable : all) branches.push_back(make_branch(Awaitable(std::move(awaitable))));
    return branches;
  }
}

template <class... Given>
inline constexpr bool is_vector_alone = false;
template <class T, class Allocator>
inline constexpr bool is_vector_alone<std::vector<T, Allocator>> = true;

}  // namespace tasks

// Runs the tasks concurrently, in the turns of the actor that awaits it. When the last one has
// ended, returns all their values (std::monostate for void). If some of them throw, it throws at
// that time the exception of the first of those, in the order of the arguments. The arguments may
// be tasks, futures, asks with or without a timeout, sleep_for, I/O operations: whatever a task can
// await.
//
// Example:
//     struct Adder {
//       int add(int a, int b) { return a + b; }
//     };
//     troupe::task<int> number(int n) {
//       co_await troupe::sleep_for(std::chrono::milliseconds(1));
//       co_return n;
//     }
//     troupe::task<> use(troupe::ref<Adder> adder) {
//       auto [one, sum] = co_await troupe::when_all(
//           number(1), adder.ask<&Adder::add>(1, 2).timeout(std::chrono::seconds(1)));
//       std::cout << one + sum << '\n';
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(use(rt.spawn<Adder>()));
//       rt.run();
//     }
template <class... Given>
requires(!tasks::is_vector_alone<std::remove_cvref_t<Given>...>) auto when_all(Given&&... all) {
  if constexpr (tasks::fit_branches<Given...>()) {
    return tasks::all_of(tasks::make_branch(std::forward<Given>(all))...);
  } else {
    return task<std::tuple<>>(tasks::all_of());
  }
}
template <class Awaitable>
auto when_all(std::vector<Awaitable>&& all) {
  if constexpr (tasks::fit_branches<Awaitable>()) {
    return tasks::all_of(tasks::make_branches(std::move(all)));
  } else {
    return task<std::tuple<>>(tasks::all_of());
  }
}
template <class Awaitable>
auto when_all(std::vector<Awaitable>& all) {
  static_assert(!std::is_same_v<Awaitable, Awaitable>,
                "troupe: when_all: it takes the vector away: when_all(std::move(the_vector))");
  return when_all(std::move(all));
}

// Runs the tasks concurrently until the first has ended. Returns its value with its index, or
// throws its exception. The other tasks are cancelled, and have ended before this continues; those
// behind one that ends at once do not start. A value for which they waited is not lost: a channel,
// a stream, a connection or a generator gives it to the next wait. Of an ask or another future only
// the wait is cancelled, and its result is dropped. The guide has a table (tasks.md). It takes the
// same arguments as when_all.
template <class First, class... Given>
requires(!tasks::is_vector_alone<std::remove_cvref_t<First>,
                                 std::remove_cvref_t<Given>...>) auto when_any(First&& first,
                                                                               Given&&... all) {
  if constexpr (tasks::has_joint_wait<First, Given...>) {
    return tasks::await_it(
        tasks::joint_wait<First, Given...>::make(std::move(first), std::move(all)...));
  } else if constexpr (tasks::fit_branches<First, Given...>()) {
    return tasks::any_of(tasks::make_branch(std::forward<First>(first)),
                         tasks::make_branch(std::forward<Given>(all))...);
  } else {
    return task<std::tuple<>>(tasks::all_of());
  }
}
template <class Awaitable>
auto when_any(std::vector<Awaitable>&& all) {
  if constexpr (tasks::has_joint_wait<std::vector<Awaitable>>) {
    if (!all.empty())
      return tasks::await_it(tasks::joint_wait<std::vector<Awaitable>>::make(std::move(all)));
  }
  if constexpr (tasks::fit_branches<Awaitable>()) {
    return tasks::any_of(tasks::make_branches(std::move(all)));
  } else {
    return task<std::tuple<>>(tasks::all_of());
  }
}
template <class Awaitable>
auto when_any(std::vector<Awaitable>& all) {
  static_assert(!std::is_same_v<Awaitable, Awaitable>,
                "troupe: when_any: it takes the vector away: when_any(std::move(the_vector))");
  return when_any(std::move(all));
}

// Wraps a future in a task.
template <class T>
task<T> as_task(future<T> result) {
  co_return co_await std::move(result);
}

namespace tasks {

template <class T>
task<T> run_limited(task<T> inner, std::chrono::nanoseconds at_most) {
  task<> time = await_it(sleep(at_most));
  coroutine* const roots[] = {&task_access::root(inner), &task_access::root(time)};
  const bool in_time = co_await join(true, roots) == 0;
  // The task may have taken something before the time was over: then that is given.
  if (in_time || !task_access::result(inner).failed()) co_return task_access::result(inner).take();
  task_access::result(time).take();  // throws if it was cancelled, as all branches were
  throw timed_out("troupe: task::timeout: the task did not end in time");
}

}  // namespace tasks

template <class T>
task<T> task<T>::timeout(time_span at_most) && {
  return tasks::run_limited(std::move(*this), at_most);
}

}  // namespace troupe
