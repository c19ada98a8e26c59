// call: the messages of asks, and the messages whose handlers are coroutines.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "troupe/actor/cell.hpp"
#include "troupe/actor/method_message.hpp"
#include "troupe/base/error.hpp"
#include "troupe/base/type_name.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/future.hpp"
#include "troupe/task/task.hpp"

namespace troupe::actor {

// Runs the async call until it suspends or is done; at its end the call's message gets `complete`.
// Thread: the one that runs the actor's turn.
void begin(tasks::async_call& call, tasks::coroutine& root) noexcept;
// The same for a reentrant actor: when the call suspends, the actor handles its next message.
void begin_reentrant(tasks::async_call& call, tasks::coroutine& root) noexcept;
// Records in the link of an ask's state whom the ask calls, for the search for deadlocks.
void link_ask(tasks::ask_link& link, const cell& callee, message::handler method) noexcept;
// Records in the link whether the callee lives on the main thread, so that only run() can complete
// the ask.
void link_main_lane(tasks::ask_link& link, const cell& callee) noexcept;
// The handler of an ask begins: gives the ask a context with a span of its own, if it is in a trace
// that is recorded. Returns the ask's context, which is not null before either.
tasks::call_context* begin_span(tasks::ask_link& ask, message::handler method) noexcept;
TROUPE_INLINE tasks::call_context* context_of_handler(tasks::ask_link& ask,
                                                      message::handler method) noexcept {
  if (ask.context() == nullptr) [[likely]]
    return nullptr;
  return begin_span(ask, method);
}
// It has ended, with that failure or with none (null).
void end_span_of(const tasks::ask_link& ask, const std::exception_ptr& failure) noexcept;
TROUPE_INLINE void end_span(const tasks::ask_link& ask,
                            const std::exception_ptr& failure) noexcept {
  if (ask.has_span) [[unlikely]]
    end_span_of(ask, failure);
}
// Exists while the handler of an ask runs that returns a future: an ask that the handler makes may
// become the answer.
class answering {
 public:
  explicit answering(tasks::shared_state& to) noexcept;
  answering(const answering&) = delete;
  answering& operator=(const answering&) = delete;
  ~answering();

 private:
  tasks::shared_state* before_;
};
// The handler has returned this future, whose result is passed to `ask`. Throws deadlock if the
// future would then wait for itself.
void forward_answer(tasks::ask_link& ask, tasks::shared_state& from);

// Whether T is reentrant: an actor's class may say `static constexpr bool reentrant = true`. While
// a coroutine handler of such an actor is suspended, the actor handles the messages behind it.
// After each co_await a handler may therefore find that other handlers have changed the actor's
// state.
template <class T>
consteval bool is_reentrant() {
  if constexpr (requires { T::reentrant; }) {
    return T::reentrant;
  } else {
    return false;
  }
}

// Whether handlers of T are meant to hold their thread, as in an actor with its own thread for
// blocking calls. An actor's class may say `static constexpr bool may_block = true`; an observed
// runtime then does not warn about its handlers.
template <class T>
consteval bool may_block() {
  if constexpr (requires { T::may_block; }) {
    return T::may_block;
  } else {
    return false;
  }
}

template <class T>
inline constexpr cell_type cell_type_of{
    sizeof(T),
    alignof(T),
    [](void* object) noexcept { std::destroy_at(static_cast<T*>(object)); },
    base::type_name<T>(),
    is_reentrant<T>(),
    may_block<T>()};
// The type of an actor whose object lies outside of the cell's slot, since it was passed to
// activate().
template <class T>
inline constexpr cell_type adopted_type_of{
    sizeof(T),
    alignof(void*),
    [](void* object) noexcept { delete static_cast<T*>(object); },
    base::type_name<T>(),
    is_reentrant<T>(),
    may_block<T>(),
    true};

// Reports an exception that no caller will get as a failure of the actor.
void report_failure(message::handler method, std::exception_ptr failure) noexcept;
// The error for an ask of a stopped actor. Without memory for it, the result is a std::bad_alloc
// instead.
std::exception_ptr stopped_error(message::handler method) noexcept;
// The result of an ask that was refused as a deadlock and is not handled.
std::exception_ptr refused_error() noexcept;
// order: relaxed  a hint: a handler that begins at the same time may run
inline bool is_refused(const tasks::ask_link& ask) noexcept { return ask.is_refused(); }
// The error for a handler that returned a future without a result, which will never get a result.
std::exception_ptr no_future_error(message::handler method) noexcept;
// Whether the exception is `cancelled`, which a cancelled wait throws. In an actor that is being
// stopped this is no failure.
bool is_cancelled(const std::exception_ptr& failure) noexcept;

// How a handler's return type relates to the answer: the answer's type, and whether it comes by a
// coroutine or a future.
template <class R>
struct answer_of {
  using type = std::decay_t<R>;
  static constexpr bool is_coroutine = false, is_future = false;
};
template <>
struct answer_of<void> {
  using type = void;
  static constexpr bool is_coroutine = false, is_future = false;
};
template <class U>
struct answer_of<task<U>> {
  using type = U;
  static constexpr bool is_coroutine = true, is_future = false;
};
template <class U>
struct answer_of<future<U>> {
  using type = U;
  static constexpr bool is_coroutine = false, is_future = true;
};

// A method with its arguments, or a callable: called once, with the actor's object.
template <class T, auto Method, class... Params>
struct method_call {
  template <class... Args>
  explicit method_call(std::in_place_t, Args&&... values)
      : arguments(std::forward<Args>(values)...) {}
  decltype(auto) operator()(T& object) {
    return std::apply(
        [&object](auto&... values) -> decltype(auto) {
          return std::invoke(Method, object, static_cast<Params&&>(values)...);
        },
        arguments);
  }
  static const char* name() { return base::value_name<Method>(); }
  std::tuple<std::remove_cvref_t<Params>...> arguments;
};
template <class T, class Callable>
struct callable_call {
  template <class Value>
  explicit callable_call(std::in_place_t, Value&& value) : callable(std::forward<Value>(value)) {}
  decltype(auto) operator()(T& object) { return std::invoke(std::move(callable), object); }
  static const char* name() { return base::type_name<Callable>(); }
  Callable callable;
};

// The receiver of a handler's result: answer_to gives it to the caller that asked, no_answer drops
// it.
template <class U>
struct answer_to {
  void fail(message::handler, std::exception_ptr failure) noexcept {
    promised.set_exception(std::move(failure));
  }
  void stopped(message::handler method) noexcept { promised.set_exception(stopped_error(method)); }
  // The handler did not run, or its limit ended it. The wait has received the reason: nothing is
  // lost if no code takes this exception.
  void end(message::handler, std::exception_ptr why) noexcept {
    auto& state = tasks::future_access::release(promised);
    state.result.fail(std::move(why));
    state.result.share_failure();
    state.resolve();
  }
  template <class... Value>
  void give(Value&&... value) {
    promised.set_value(std::forward<Value>(value)...);
  }
  promise<U> promised;
};
struct no_answer {
  void fail(message::handler method, std::exception_ptr failure) noexcept {
    report_failure(method, std::move(failure));
  }
  void stopped(message::handler) noexcept {}
  void end(message::handler method, std::exception_ptr why) noexcept {
    report_failure(method, std::move(why));
  }
  template <class... Value>
  void give(Value&&...) noexcept {}
};

// Passes the result of one future to a promise when the future is ready.
template <class U>
struct forwarder final : tasks::nested_observer {
  forwarder(tasks::state_ref<tasks::state_of<U>> source, promise<U> receiver)
      : nested_observer{{&on_resolved}}, from(std::move(source)), target(std::move(receiver)) {}
  static void on_resolved(observer& base) noexcept {
    tasks::tell_nested(static_cast<forwarder&>(base), &pass_on);
  }
  static void pass_on(observer& base) noexcept {
    std::unique_ptr<forwarder> self(static_cast<forwarder*>(&base));
    if (auto failure = self->from->result.take_failure())
      return self->target.set_exception(std::move(failure));
    if constexpr (std::is_void_v<U>) {
      self->target.set_value();
    } else {
      auto failure = tasks::failure_of([&] { self->target.set_value(self->from->result.take()); });
      if (failure != nullptr) self->target.set_exception(std::move(failure));
    }
  }
  tasks::state_ref<tasks::state_of<U>> from;
  promise<U> target;
};
template <class U>
void forward_result(future<U>&& from, promise<U>&& to) {
  auto* node = new forwarder<U>(tasks::future_access::take(std::move(from)), std::move(to));
  if (!node->from->attach(*node)) forwarder<U>::on_resolved(*node);
}

// An ask whose handler is an ordinary method. The message is also the state of the ask's future. It
// destroys the call's arguments before it gives the answer.
template <class T, class Call>
struct asked_message final
    : message,
      tasks::state_of<typename answer_of<std::invoke_result_t<Call&, T&>>::type> {
  using answer = answer_of<std::invoke_result_t<Call&, T&>>;
  using state = tasks::state_of<typename answer::type>;

  template <class... Args>
  explicit asked_message(Args&&... values)
      : message(&act_on), state(&free_this), call(std::in_place, std::forward<Args>(values)...) {
    this->asked = &link;
  }
  ~asked_message() {}

  static const char* act_on(message* base, void* object, message_act act) {
    if (act == message_act::describe) return Call::name();
    auto& self = *static_cast<asked_message*>(base);
    std::exception_ptr failure;
    bool was_told = false;  // the wait ended before, with its own error
    const tasks::inside_context within(
        act == message_act::handle ? context_of_handler(self.link, &act_on) : self.link.context());
    if (act == message_act::discard) {
      failure = stopped_error(&act_on);
    } else if (within.is_over()) [[unlikely]] {
      failure = tasks::context_error(*self.link.context());
      was_told = true;
    } else if (is_refused(self.link)) [[unlikely]] {
      failure = refused_error();
      was_told = true;
    } else {
      try {
        if constexpr (answer::is_future) {
          auto from = [&] {
            const answering answering_scope(self);
            return self.call(*static_cast<T*>(object));
          }();
          std::destroy_at(&self.call);
          end_span(self.link, nullptr);
          return pass_on(std::move(from), self), nullptr;
        } else if constexpr (std::is_void_v<typename answer::type>) {
          self.call(*static_cast<T*>(object));
          self.result.set();
        } else {
          self.result.set(self.call(*static_cast<T*>(object)));
        }
      } catch (...) {
        failure = std::current_exception();
      }
    }
    std::destroy_at(&self.call);
    // Set after the catch block, so that this thread no longer refers to the exception when the
    // receiver has it.
    end_span(self.link, failure);
    if (failure != nullptr) self.result.fail(std::move(failure));
    if (was_told) [[unlikely]]
      self.result.share_failure();
    self.resolve();
    return nullptr;
  }

  static void pass_on(future<typename answer::type> from, asked_message& asked) noexcept {
    auto promised =
        tasks::future_access::promise_of<typename answer::type>(static_cast<state&>(asked));
    auto failure = from.valid() ? tasks::failure_of([&] {
      forward_answer(asked.link, tasks::future_access::state(from));
      forward_result(std::move(from), std::move(promised));
    })
                                : no_future_error(&act_on);
    if (failure != nullptr) promised.set_exception(std::move(failure));
  }

  static bool free_this(tasks::shared_state& base, bool) noexcept {
    message_guard<asked_message> guard{&static_cast<asked_message&>(base)};
    return true;
  }

  tasks::ask_link link;
  union {
    Call call;
  };
};

// A call of a handler that is a coroutine. The message keeps the arguments until the coroutine is
// done.
template <class T, class Call, class Answer>
struct coroutine_message final : message {
  using task_type = std::invoke_result_t<Call&, T&>;

  template <class... Args>
  explicit coroutine_message(Answer&& given, Args&&... values)
      : message(&act_on),
        answer(std::move(given)),
        call(std::in_place, std::forward<Args>(values)...) {}

  static const char* act_on(message* base, void* object, message_act act) {
    if (act == message_act::describe) return Call::name();
    auto& self = *static_cast<coroutine_message*>(base);
    if (act == message_act::handle) return self.handle(object, is_reentrant<T>());
    if (act == message_act::discard) {
      self.answer.stopped(&act_on);
      self.free();
    } else {
      self.finish();
    }
    return nullptr;
  }

  // The link of the ask that this message is; null for none.
  tasks::ask_link* link() const noexcept {
    if constexpr (std::is_same_v<Answer, no_answer>) {
      return nullptr;
    } else {
      return tasks::future_access::state(answer.promised)->asked;
    }
  }

  TROUPE_INLINE const char* handle(void* object, bool actor_is_reentrant) {
    tasks::ask_link* const asked = link();
    tasks::call_context* const within =
        asked == nullptr ? nullptr : context_of_handler(*asked, &act_on);
    const bool is_late = within != nullptr && tasks::is_over(*within);
    if (is_late || (asked != nullptr && is_refused(*asked))) [[unlikely]] {
      auto failure = is_late ? tasks::context_error(*within) : refused_error();
      Answer reply = std::move(answer);
      free();
      reply.end(&act_on, std::move(failure));
      return nullptr;
    }
    auto failure = tasks::failure_of([&] { running.emplace(call(*static_cast<T*>(object))); });
    if (failure != nullptr) {
      Answer reply = std::move(answer);
      free();
      reply.fail(&act_on, std::move(failure));
      return nullptr;
    }
    tasks::async_call& calls = own_call.emplace(*this);
    if constexpr (!std::is_same_v<Answer, no_answer>)
      calls.answers = tasks::future_access::state(answer.promised);
    calls.context = within;
    if (actor_is_reentrant) {
      begin_reentrant(calls, tasks::task_access::root(*running));
    } else {
      begin(calls, tasks::task_access::root(*running));
    }
    return nullptr;
  }

  // Destroys the coroutine's frame before it reports the result: if the actor stops at its
  // failures, the report may destroy the actor.
  void finish() noexcept {
    using value_type = typename answer_of<task_type>::type;
    auto& from = tasks::task_access::result(*running);
    std::exception_ptr failure = from.take_failure();
    bool stopped = own_call->cancelled && is_cancelled(failure), was_told = false;
    if (stopped && own_call->context != nullptr && tasks::is_over(*own_call->context))
        [[unlikely]] {
      failure = tasks::context_error(*own_call->context);
      stopped = false;
      was_told = true;
    }
    tasks::result_of<value_type> result;
    if constexpr (!std::is_void_v<value_type>) {
      if (failure == nullptr) failure = tasks::failure_of([&] { result.set(from.take()); });
    }
    if (const tasks::ask_link* const asked = link()) end_span(*asked, failure);
    Answer reply = std::move(answer);
    free();
    if (stopped) return reply.stopped(&act_on);
    if (was_told) return reply.end(&act_on, std::move(failure));
    if constexpr (std::is_void_v<value_type>) {
      if (failure == nullptr) return reply.give();
    } else {
      if (failure == nullptr) failure = tasks::failure_of([&] { reply.give(result.take()); });
    }
    if (failure != nullptr) reply.fail(&act_on, std::move(failure));
  }

  void free() noexcept {
    if (own_call && own_call->context != nullptr) [[unlikely]]
      tasks::leave_context(*own_call);
    std::destroy_at(this);
    memory::deallocate(this, sizeof(coroutine_message));
  }

  Answer answer;
  Call call;
  std::optional<task_type> running;
  std::optional<tasks::async_call> own_call;
};

}  // namespace troupe::actor
