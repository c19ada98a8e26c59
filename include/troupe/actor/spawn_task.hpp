// spawn_task: runs a task on its own, as an actor whose only messages are the events that the task
// awaits.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "troupe/actor/call.hpp"
#include "troupe/actor/method.hpp"
#include "troupe/actor/spawn.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/observe/trace.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::actor {

// The object of a spawned task's actor, and the message that starts the task. `at` is null if there
// was no memory for an actor.
struct spawned_task final : message {
  spawned_task(cell* at, message::handler acts, tasks::coroutine& begins,
               tasks::shared_state* state) noexcept
      : message(acts), own_call(*this), root(begins), result(state) {
    own_call.actor = at;
  }
  tasks::async_call own_call;
  tasks::coroutine& root;
  tasks::shared_state* result;  // owns the root, unless it is null
};

struct queued_task;

// Schedules the task's first turn. The turns call `act` from then on, and `act` completes the
// result. Returns the block in which the task waits for its first turn, if the receiver of the
// result may give it up meanwhile; otherwise null. Throws std::bad_alloc; then nothing was done.
queued_task* start_spawned(const placement& where, message::handler act, tasks::coroutine& root,
                           tasks::shared_state& result);
// Notifies a task that has not begun that its result has no taker any more. Returns false and does
// nothing if the task has begun. Thread: any.
bool give_up_result(queued_task& task, tasks::shared_state& result) noexcept;

// Drops the ref with which the actor was made, so that the actor ends after this turn. Called in
// the actor's turn.
void end_spawned(cell& actor) noexcept;

// Reports an exception that the last holder of the future did not take. Thread: any.
void report_untaken(cell& actor, message::handler method, std::exception_ptr failure) noexcept;

template <class T>
struct spawned_state final : tasks::state_of<T> {
  explicit spawned_state(task<T> given) noexcept
      : tasks::state_of<T>(&free_this), running(std::move(given)) {}
  static spawned_state& make(task<T> given) {
    return *::new (memory::allocate(sizeof(spawned_state))) spawned_state(std::move(given));
  }
  static bool free_this(tasks::shared_state& self, bool early) noexcept {
    auto& typed = static_cast<spawned_state&>(self);
    if (early) {
      if (!give_up_result(*typed.waits_in, self)) return false;
      tasks::task_access::release(typed.running);
    } else if (typed.marked) [[unlikely]] {
      typed.report();
    }
    typed.~spawned_state();
    memory::deallocate(&typed, sizeof(spawned_state));
    return true;
  }
  ~spawned_state() {
    if (!this->marked) std::destroy_at(&running);
  }
  TROUPE_NOINLINE void report() noexcept {
    if (auto failure = this->result.take_failure())
      report_untaken(*failed, &act_on, std::move(failure));
    this->result.reset();
    drop_ref(*failed);
  }

  // `caller_ends` is not null if the caller itself ends the actor, or if it refused the task before
  // there was an actor.
  static const char* act_on(message* base, void* caller_ends, message_act act) {
    if (act == message_act::describe) return base::type_name<task<T>>();
    auto& object = static_cast<spawned_task&>(*base);
    cell* const actor = static_cast<cell*>(object.own_call.actor);
    if (act == message_act::handle) {
      begin(object.own_call, object.root);
      return nullptr;
    }
    if (object.result == nullptr) return end_untaken(object, actor, caller_ends, act);
    auto& self = static_cast<spawned_state&>(*object.result);
    if (act == message_act::detach) {
      tasks::task_access::release(self.running);
      object.result = nullptr;
      self.resolve();
      return nullptr;
    }
    bool failed = false;
    if (act == message_act::complete) [[likely]] {
      failed = !self.finish();
    } else {
      self.result.fail(actor == nullptr && caller_ends == nullptr
                           ? std::make_exception_ptr(std::bad_alloc())
                           : stopped_error(&act_on));
    }
    // The coroutine's frame is destroyed before the result is given.
    { const task<T> ended = std::move(self.running); }
    if (failed && !was_stopped(object.own_call, self.result.failure())) [[unlikely]]
      self.mark_failed(*actor);
    self.resolve();
    if (caller_ends == nullptr && actor != nullptr) end_spawned(*actor);
    return nullptr;
  }

  TROUPE_NOINLINE static const char* end_untaken(spawned_task& object, cell* actor,
                                                 void* caller_ends, message_act act) noexcept {
    std::exception_ptr failure;
    {
      task<T> ended = tasks::task_access::of_root<T>(object.root);
      if (act == message_act::complete) failure = tasks::task_access::result(ended).take_failure();
    }
    if (failure != nullptr && !was_stopped(object.own_call, failure))
      report_untaken(*actor, &act_on, std::move(failure));
    if (caller_ends == nullptr && actor != nullptr) end_spawned(*actor);
    return nullptr;
  }

  // Whether the exception only means that the task was stopped. That is no failure, whenever the
  // future is dropped.
  static bool was_stopped(const tasks::async_call& call,
                          const std::exception_ptr& failure) noexcept {
    return call.cancelled && is_cancelled(failure);
  }

  // Moves the task's result into the state. Returns false if the task has failed.
  bool finish() noexcept {
    auto& from = tasks::task_access::result(running);
    std::exception_ptr failure;
    if (from.failed()) [[unlikely]] {
      failure = from.take_failure();
    } else if constexpr (std::is_void_v<T>) {
      this->result.set();
    } else if constexpr (std::is_nothrow_move_constructible_v<tasks::stored<T>>) {
      this->result.set(from.take());
    } else {
      failure = tasks::failure_of([&] { this->result.set(from.take()); });
    }
    if (failure == nullptr) [[likely]]
      return true;
    this->result.fail(std::move(failure));
    return false;
  }
  // Called after the task's end: the last holder of the state reports the failure if it was not
  // taken.
  void mark_failed(cell& actor) noexcept {
    std::destroy_at(&running);
    failed = &actor;
    add_ref(actor);
    this->marked = true;
  }

  union {
    task<T> running;
    cell* failed;  // the task's actor, if this state is `marked`
  };
  queued_task* waits_in = nullptr;  // if this state is `queued`
};

template <class T>
future<T> spawn_task(const placement& where, task<T> given) {
  if (observe::is_watched(observe::watched::trace_contexts)) [[unlikely]]
    given = tasks::in_current_trace(std::move(given));
  auto& state = spawned_state<T>::make(std::move(given));
  future<T> later = tasks::future_access::future_of<T>(state);
  try {
    state.waits_in = start_spawned(where, &spawned_state<T>::act_on,
                                   tasks::task_access::root(state.running), state);
    state.queued = state.waits_in != nullptr;
  } catch (...) {
    tasks::future_access::take(std::move(later)).release();
    state.free(state, false);
    throw;
  }
  return later;
}

// Whether `spawn` treats this argument as a callable that makes a task. A task is not one, nor is
// the first argument of another overload of `spawn`.
template <class Given>
concept may_make_task =
    !tasks::is_task<std::remove_cvref_t<Given>> && !is_ref<std::remove_cvref_t<Given>> &&
    !std::is_base_of_v<context_options, std::remove_cvref_t<Given>>;

// Why a callable and these arguments cannot make a task. Both are kept by value, as in a message.
enum class unmade : std::uint8_t {
  none,
  an_actor,
  method,
  refers,
  not_moved,
  immovable,
  unfit,
  no_task,
  a_work,
  a_reference
};

template <class Maker, class... Args>
consteval unmade why_unmade() {
  using troupe::detail::misfit;
  using maker = std::decay_t<Maker>;
  misfit kept = troupe::detail::misfit_of_kept<maker, Maker>();
  if constexpr (sizeof...(Args) > 0) {
    static_cast<void>(
        (... ||
         ((kept = kept == misfit::none
                      ? troupe::detail::misfit_of_kept<typename travelling<Args>::type, Args>()
                      : kept) != misfit::none)));
  }
  if (kept == misfit::refers)
    return std::is_member_function_pointer_v<maker> ? unmade::method : unmade::refers;
  if (kept == misfit::not_moved) return unmade::not_moved;
  if (kept != misfit::none) return unmade::immovable;
  if constexpr (!std::is_invocable_v<maker, typename travelling<Args>::type...>) {
    constexpr bool is_call = std::is_function_v<std::remove_pointer_t<maker>> || requires {
      &maker::operator();
    };
    if (std::is_member_function_pointer_v<maker>) return unmade::method;
    return sizeof...(Args) > 0 || is_call || !std::is_class_v<maker> ? unmade::unfit
                                                                     : unmade::an_actor;
  } else {
    using result = std::invoke_result_t<maker, typename travelling<Args>::type...>;
    if (tasks::is_task<result>) return unmade::none;
    if (tasks::is_task<std::remove_cvref_t<result>>) return unmade::a_reference;
    return tasks::runs_when_awaited<std::remove_cvref_t<result>> ? unmade::a_work : unmade::no_task;
  }
}

// The text of the compile error for arguments that no overload of `spawn` accepts.
#define TROUPE_SPAWN_REFUSES                                                             \
  "troupe: spawn: it takes a task, or a callable that makes a task, and its arguments; " \
  "spawn<T>(arguments...) makes an actor; wrap a name of several functions or of a "     \
  "template in a lambda, spawn([](int n) { return work(n); }, 5)"

// The type of the task's value; void if no task can be made.
template <class Maker, class... Args>
struct value_made {
  using type = void;
};
template <class Maker, class... Args>
requires(why_unmade<Maker, Args...>() == unmade::none) struct value_made<Maker, Args...>
    : answer_of<std::invoke_result_t<std::decay_t<Maker>, typename travelling<Args>::type...>> {
};
template <class Maker, class... Args>
using made_value = typename value_made<Maker, Args...>::type;

// Spawns the task that a callable makes from these arguments. The callable is called in the task's
// first turn. The callable and the arguments are kept until the task has ended.
template <class Maker, class... Args>
auto spawn_made(const placement& where, Maker&& given, Args&&... args) {
  constexpr unmade why = why_unmade<Maker, Args...>();
  static_assert(why != unmade::an_actor,
                "troupe: spawn: this is an object, which cannot be called without arguments: the "
                "arguments of a lambda follow it, spawn(lambda, arguments...); make an actor by "
                "spawn<T>(arguments...), or of an object by activate(std::make_unique<T>(...))");
  static_assert(why != unmade::method,
                "troupe: spawn: a method is called on an object that is kept beside it, by value. "
                "For an actor's method send a message: to.tell<&T::method>(...), in the actor "
                "itself troupe::self(this).tell<&T::method>(...)");
  static_assert(why != unmade::refers,
                "troupe: spawn: the callable or an argument is a pointer, a view, an iterator, a "
                "lock or a reference wrapper: the task "
                "runs later and on another thread, and it would dangle or race. Give a value, or "
                "wrap it in troupe::unchecked");
  static_assert(
      why != unmade::not_moved,
      "troupe: spawn: the callable or an argument can only be moved; give it with std::move");
  static_assert(why != unmade::immovable,
                "troupe: spawn: the callable or an argument can be neither copied nor moved into "
                "the task; give a std::unique_ptr to it");
  static_assert(
      why != unmade::unfit,
      "troupe: spawn: the callable cannot be called with these arguments. They are kept and moved "
      "into the call, a literal as a std::string: a parameter must be a value or a constant "
      "reference; give an object outside to which it writes as troupe::unchecked<X&>{it}");
  static_assert(why != unmade::no_task,
                "troupe: spawn: the callable makes no task: let it return troupe::task<>, or give "
                "a procedure to post() and a computation to lazy()");
  static_assert(
      why != unmade::a_work,
      "troupe: spawn: the callable makes a work or a fork, which a task or a handler awaits");
  static_assert(
      why != unmade::a_reference,
      "troupe: spawn: the callable returns a reference to a task; let it return the task by value");
  if constexpr (why == unmade::none) {
    using value = made_value<Maker, Args...>;
    return spawn_task(
        where, tasks::run_made<value, std::decay_t<Maker>, typename travelling<Args>::type...>(
                   std::forward<Maker>(given), std::forward<Args>(args)...));
  } else {
    return future<>();
  }
}

}  // namespace troupe::actor
