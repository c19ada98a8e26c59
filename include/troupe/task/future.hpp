// promise and future: one result that is set once, from any thread.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "troupe/base/error.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/base/time_span.hpp"
#include "troupe/task/async_call.hpp"
#include "troupe/task/callback.hpp"
#include "troupe/task/shared_state.hpp"
#include "troupe/task/task.hpp"
#include "troupe/task/timer.hpp"

namespace troupe {

template <class T = void>
class future;

namespace tasks {

// A coroutine's suspension until a result is ready.
class future_wait : public suspension, public observer {
 public:
  explicit future_wait(shared_state& state, sched::message::handler acts = &act_on) noexcept
      : suspension(acts), observer{&on_resolved}, state_(&state) {}
  bool suspend(coroutine& awaiting);
  void finish() const {  // throws if the wait ended in another way than by the result
    if (ended != outcome::arrived) [[unlikely]]
      throw_early_end();
  }

 protected:
  static const char* act_on(sched::message*, void*, sched::message_act);
  static void on_resolved(observer& self) noexcept;
  void end_early(outcome how) noexcept;
  void give_up() const noexcept;
  [[noreturn]] void throw_early_end() const;
  friend struct debugger_view;  // src/runtime/debugger_table.cpp
  friend const shared_state* awaited_by(const suspension& wait) noexcept;
  shared_state* state_;
};

// The state for whose result this suspension waits; null for other suspensions.
const shared_state* awaited_by(const suspension& wait) noexcept;
// The link of the ask for whose answer this suspension waits; null for other suspensions.
const ask_link* asked_by(const suspension& wait) noexcept;
// Ends a wait for a result or a lock that would never end. Returns true if the caller must call
// over(); false if the wait is already ending.
bool refuse(suspension& wait) noexcept;
// Throws the text that the search for deadlocks wrote about this wait
// (src/actor/waits/deadlock_search.cpp).
[[noreturn]] void throw_refused(const suspension& wait);

// A future_wait with a time limit or a stop token, or both.
class limited_suspension final : public future_wait, public timer {
 public:
  explicit limited_suspension(shared_state& awaited) noexcept
      : future_wait(awaited), timer(&on_time, timer_source::timeout) {}
  bool suspend(coroutine& awaiting, std::chrono::nanoseconds at_most, const std::stop_token& stop);
  void finish();

 private:
  struct on_stop {
    limited_suspension& self;
    void operator()() const noexcept { self.end_early(outcome::cancelled); }
  };
  static void on_time(timer& self) noexcept;
  std::optional<std::stop_callback<on_stop>> stop_;
  bool armed_ = false;
};

// The result of a promise that was dropped. Without memory for it, the result is a std::bad_alloc
// instead.
std::exception_ptr broken_error() noexcept;

// Sets the result and resolves the state. The resolver does not touch the state afterwards.
template <class T, class Value>
void resolve_with(state_of<T>& state, Value&& set) noexcept {
  try {
    set(state.result);
  } catch (...) {
    state.result.fail(std::current_exception());
  }
  state.resolve();
}

// Access for other parts of the library; not for users.
struct future_access;

// Owns the receiver's share of a state.
template <class State>
class state_ref {
 public:
  state_ref() = default;
  explicit state_ref(State& adopted) noexcept : state_(&adopted) {}
  state_ref(state_ref&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  state_ref& operator=(state_ref other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~state_ref() {
    if (state_ != nullptr) state_->leave();
  }
  State* get() const noexcept { return state_; }
  State* operator->() const noexcept { return state_; }
  State& operator*() const noexcept { return *state_; }
  explicit operator bool() const noexcept { return state_ != nullptr; }
  State* release() noexcept { return std::exchange(state_, nullptr); }

 private:
  State* state_ = nullptr;
};

}  // namespace tasks

// The side that sets the result, once. Move-only. Thread: any, one at a time. Errors: a promise
// that is dropped without a result resolves its future with broken_promise.
//
// Example:
//     troupe::promise<int> answer;
//     troupe::future<int> later = answer.get_future();
//     std::thread([answer = std::move(answer)]() mutable { answer.set_value(42); }).detach();
//     std::cout << later.get() << '\n';
template <class T = void>
class promise {
 public:
  promise() : state_(&tasks::state_of<T>::make()) {}
  promise(promise&& other) noexcept
      : state_(std::exchange(other.state_, nullptr)), future_taken_(other.future_taken_) {}
  promise& operator=(promise&& other) noexcept {
    promise(std::move(other)).swap(*this);
    return *this;
  }
  ~promise() {
    if (state_ != nullptr) break_it();
  }

  // The future of this promise. Throws usage_error at the second call.
  future<T> get_future();

  // Set the result and resume the coroutine that awaits the future. If copying or moving the value
  // throws, that exception is the result. Errors: usage_error if the promise was already resolved,
  // or if the exception is null; the promise then stays unchanged.
  template <class... Value>
  requires(sizeof...(Value) == (std::is_void_v<T> ? 0 : 1)) void set_value(Value&&... value) {
    tasks::resolve_with(
        take(), [&](tasks::result_of<T>& result) { result.set(std::forward<Value>(value)...); });
  }
  void set_exception(std::exception_ptr failure) {
    if (failure == nullptr)
      throw usage_error(
          "troupe: promise::set_exception: the exception is null; give it one, or call set_value");
    tasks::resolve_with(take(),
                        [&](tasks::result_of<T>& result) { result.fail(std::move(failure)); });
  }

  // Whether the future was taken and then dropped, so that no code will read the result. Only a
  // hint while the future is being moved.
  bool abandoned() const noexcept { return future_taken_ && state_ != nullptr && state_->left(); }

  void swap(promise& other) noexcept {
    std::swap(state_, other.state_);
    std::swap(future_taken_, other.future_taken_);
  }

 private:
  friend tasks::future_access;
  explicit promise(tasks::state_of<T>& adopted) noexcept : state_(&adopted) {}
  tasks::state_of<T>& take() {
    if (state_ == nullptr)
      throw usage_error(
          "troupe: promise: it is resolved already, or was moved from; resolve each promise once");
    return *std::exchange(state_, nullptr);
  }
  void break_it() noexcept { set_exception(tasks::broken_error()); }
  tasks::state_of<T>* state_;
  bool future_taken_ = false;
};

// The side that gets the result, once. Move-only. Thread: any, one at a time; in a coroutine
// `co_await` it, elsewhere use then() or block in get(). Lifetime: a future that is dropped drops
// the result; the work that produces the result continues.
//
// Example:
//     struct Store { int read(int key) { return key * 2; } };
//     troupe::task<> show(troupe::ref<Store> store) {
//       std::cout << co_await store.ask<&Store::read>(4) << '\n';
//       troupe::future<int> later = store.ask<&Store::read>(5);
//       std::cout << co_await std::move(later).timeout(std::chrono::seconds(1)) << '\n';
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(show(rt.spawn<Store>()));
//       rt.run();
//     }
template <class T>
class future {
 public:
  future() = default;
  future(future&&) noexcept = default;
  future& operator=(future&&) noexcept = default;

  // Whether the result is still pending or can still be taken. False after the future was moved
  // from or awaited.
  bool valid() const noexcept { return static_cast<bool>(state_); }
#define TROUPE_NOT_YET                                                                           \
  "troupe: future: the value is not here yet: co_await it in a task or a coroutine handler, or " \
  "block in "                                                                                    \
  "get() on a thread of your own"
  template <class Value TROUPE_SAYS(TROUPE_NOT_YET)>
  requires(std::is_same_v<Value, T> || (std::is_arithmetic_v<Value> && std::is_arithmetic_v<T>))
  operator Value() const TROUPE_REFUSED(TROUPE_NOT_YET);
#undef TROUPE_NOT_YET
  // Whether get() would return at once.
  bool ready() const noexcept { return state_ && state_->resolved(); }

  // Blocks until the result is ready; returns the value or throws the exception.
  //
  // Thread: a thread that is not the runtime's. Errors: usage_error in a handler, even if the
  // result is ready: use `co_await` or then(). On the main thread, outside of run(): usage_error
  // for a result that only run() can produce (the answer of an actor of the main thread, and each
  // pending result of a simulated program), and deadlock for a result that depends on such a
  // result; before it throws, other threads have one second to call run(). After one of these
  // errors the future is unchanged.
  T get() {
    wait();
    auto state = std::move(state_);
    return state->result.take();
  }
  // Blocks like get(), but leaves the value or the exception in the future.
  void wait() const { static_cast<void>(wait_for(std::chrono::nanoseconds::max())); }
  // Returns false if the time ends first; a zero or negative time ends at once.
  bool wait_for(time_span at_most) const {
    check();
    tasks::check_may_block("future::get and wait");
    return state_->resolved() || state_->wait(at_most);
  }

  class awaiter {
   public:
    explicit awaiter(tasks::state_ref<tasks::state_of<T>> state) noexcept
        : state_(std::move(state)), wait_(*state_) {}
    awaiter(awaiter&&) = delete;
    bool await_ready() const noexcept { return false; }
    template <std::derived_from<tasks::promise_base> Promise>
    bool await_suspend(std::coroutine_handle<Promise> awaiting) {
      if (state_->resolved()) return tasks::suspend_ready(awaiting.promise());
      return wait_.suspend(awaiting.promise());
    }
    T await_resume() {
      wait_.finish();
      return state_->result.take();
    }

   private:
    tasks::state_ref<tasks::state_of<T>> state_;
    tasks::future_wait wait_;
  };
  awaiter operator co_await() {
    check();
    return awaiter(std::move(state_));
  }

  // Calls `on_value` with the value, or `on_error` with the exception, when the result is ready. An
  // exception that on_value throws also goes to on_error.
  //
  // Thread: after a call from an actor's turn, the callback runs in a later turn of that actor.
  // Otherwise it runs on the thread that resolves the promise, at once; but if 64 such callbacks
  // are already nested on that thread, it runs when the innermost has returned. Errors: an
  // exception that on_error throws is a failure of the actor; outside of actors it ends the
  // program.
  template <class OnValue, class OnError>
  void then(OnValue&& on_value, OnError&& on_error) {
    check();
    static_assert(std::is_invocable_v<std::decay_t<OnError>&, std::exception_ptr>,
                  "troupe: future::then: on_error must be callable with (std::exception_ptr)");
    static_assert(takes_value<OnValue>(),
                  "troupe: future::then: on_value must be callable with the value, or without "
                  "arguments for a "
                  "future<>; a value is moved in, so that a parameter is a T, a T&& or a const T&");
    static_assert(!makes_task<OnValue>() && !tasks::makes_task<OnError, std::exception_ptr>,
                  "troupe: future::then: a callback is a coroutine, which would never run: "
                  "co_await the future in a task, or let the "
                  "callback spawn one");
    tasks::callback<T, std::decay_t<OnValue>, std::decay_t<OnError>>::start(
        state_, std::forward<OnValue>(on_value), std::forward<OnError>(on_error));
  }
  // The same without on_error: an exception is a failure of the actor whose turn this is.
  template <class OnValue>
  void then(OnValue&& on_value) {
    then(std::forward<OnValue>(on_value),
         [](std::exception_ptr failure) { std::rethrow_exception(std::move(failure)); });
  }

  // A future with a time limit, a stop token, or both. If the limit is reached or a stop is
  // requested first, co_await throws timed_out or cancelled, and the result is dropped when it
  // arrives. Exactly one of result, time and token ends the wait.
  class limited {
   public:
    class awaiter {
     public:
      explicit awaiter(limited&& limited) noexcept
          : limited_(std::move(limited)), wait_(*limited_.state_) {}
      awaiter(awaiter&&) = delete;
      bool await_ready() const noexcept { return false; }
      template <std::derived_from<tasks::promise_base> Promise>
      bool await_suspend(std::coroutine_handle<Promise> awaiting) {
        if (limited_.state_->resolved()) return tasks::suspend_ready(awaiting.promise());
        return wait_.suspend(awaiting.promise(), limited_.at_most_, limited_.stop_);
      }
      T await_resume() {
        wait_.finish();
        return limited_.state_->result.take();
      }

     private:
      limited limited_;
      tasks::limited_suspension wait_;
    };
    awaiter operator co_await() && { return awaiter(std::move(*this)); }
    limited timeout(time_span at_most) && {
      at_most_ = at_most;
      return std::move(*this);
    }
    limited stop(std::stop_token token) && {
      stop_ = std::move(token);
      return std::move(*this);
    }
    template <class Refused = void>
    limited timeout(time_span) const& {
      tasks::refuse_named_awaitable<Refused>();
    }
    template <class Refused = void>
    limited stop(const std::stop_token&) const& {
      tasks::refuse_named_awaitable<Refused>();
    }

   private:
    friend future;
    explicit limited(tasks::state_ref<tasks::state_of<T>> state) noexcept
        : state_(std::move(state)) {}
    tasks::state_ref<tasks::state_of<T>> state_;
    std::chrono::nanoseconds at_most_ = std::chrono::nanoseconds::max();
    std::stop_token stop_;
  };
  limited timeout(time_span at_most) && { return limits().timeout(at_most); }
  limited stop(std::stop_token token) && { return limits().stop(std::move(token)); }
  template <class Refused = void>
  limited timeout(time_span) const& {
    tasks::refuse_named_awaitable<Refused>();
  }
  template <class Refused = void>
  limited stop(const std::stop_token&) const& {
    tasks::refuse_named_awaitable<Refused>();
  }

 private:
  friend tasks::future_access;
  friend promise<T>;
  template <class OnValue>
  static consteval bool takes_value() {
    if constexpr (std::is_void_v<T>) {
      return std::is_invocable_v<std::decay_t<OnValue>&>;
    } else {
      return std::is_invocable_v<std::decay_t<OnValue>&, T>;
    }
  }
  template <class OnValue>
  static consteval bool makes_task() {
    if constexpr (std::is_void_v<T>) {
      return tasks::makes_task<OnValue>;
    } else {
      return tasks::makes_task<OnValue, T>;
    }
  }
  explicit future(tasks::state_ref<tasks::state_of<T>> state) noexcept : state_(std::move(state)) {}
  limited limits() {
    check();
    return limited(std::move(state_));
  }
  void check() const {
    if (!state_)
      throw usage_error(
          "troupe: future: it has no result: it was moved from, awaited, or is empty; await each "
          "future once");
  }
  tasks::state_ref<tasks::state_of<T>> state_;
};

template <class T>
future<T> promise<T>::get_future() {
  if (state_ == nullptr || future_taken_)
    throw usage_error(
        "troupe: promise::get_future: it was called before, or the promise is resolved; call it "
        "once, before that");
  future_taken_ = true;
  state_->take();
  return future<T>(tasks::state_ref<tasks::state_of<T>>(*state_));
}

namespace tasks {

struct future_access {
  template <class T>
  static promise<T> promise_of(state_of<T>& adopted) noexcept {
    return promise<T>(adopted);
  }
  // The future of a state that has no receiver yet.
  template <class T>
  static future<T> future_of(state_of<T>& state) noexcept {
    state.take();
    return future<T>(state_ref<state_of<T>>(state));
  }
  template <class T>
  static state_ref<state_of<T>> take(future<T>&& source) noexcept {
    return std::move(source.state_);
  }
  template <class T>
  static state_of<T>& state(const future<T>& source) noexcept {
    return *source.state_;
  }
  template <class T>
  static state_of<T>* state(const promise<T>& source) noexcept {
    return source.state_;
  }
  // Gives up the promise's share; the caller must resolve the state.
  template <class T>
  static state_of<T>& release(promise<T>& source) noexcept {
    return *std::exchange(source.state_, nullptr);
  }
};

}  // namespace tasks

}  // namespace troupe
