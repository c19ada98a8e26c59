// async_generator<T>: a coroutine that awaits anything that a task can await, and yields values one
// after the other.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "troupe/base/error.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/base/time_span.hpp"
#include "troupe/task/side_call.hpp"
#include "troupe/task/task.hpp"

namespace troupe {

template <class T>
class async_generator;

namespace streams {

struct access;
[[noreturn]] void throw_early_end(tasks::outcome how);

// The coroutine lies in an async call of its own: it keeps waiting for its event when its user no
// longer waits for its next value.
template <class T>
class async_promise final : public tasks::promise_base {
 public:
  async_promise() noexcept : side(*this, &destroy) {}
  template <class Object, class... Args>
  // g++ 12 also matches an `Object&` of an object as an Object
  requires std::is_class_v<std::remove_reference_t<Object>>
  explicit async_promise(Object&, const Args&...) noexcept : async_promise() {}
  async_generator<T> get_return_object() noexcept;
  void return_void() noexcept { side.given = nullptr; }
  void unhandled_exception() noexcept {
    failure_.set(std::current_exception());
    side.given = nullptr;
  }
  template <class Awaitable>
  decltype(auto) await_transform(Awaitable&& awaited,
                                 tasks::source_line where = __builtin_source_location()) {
    side.given = nullptr;
    using plain = std::remove_cvref_t<Awaitable>;
    tasks::promise_base& base = *this;
    if constexpr (std::is_scalar_v<plain> ||
                  (tasks::is_task<plain> && std::is_lvalue_reference_v<Awaitable>)) {
      return base.await_transform(std::forward<Awaitable>(awaited));  // refused there
    } else {
      return base.await_transform(std::forward<Awaitable>(awaited), where);
    }
  }

  std::suspend_always yield_value(T&& value) noexcept {
    give(value);
    return {};
  }
  // Yields a copy, which lives until the coroutine continues.
  struct copied {
    T value;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<async_promise> giver) noexcept {
      giver.promise().give(value);
    }
    void await_resume() const noexcept {}
  };
  copied yield_value(const T& value) requires std::copy_constructible<T> { return {value}; }

  // Moves out the value that the coroutine yielded. Without a value, the coroutine or the user's
  // wait has ended.
  std::optional<T> take(tasks::outcome how) {
    if (side.given == nullptr) [[unlikely]]
      return none(how);
    return std::optional<T>(std::move(*static_cast<T*>(side.given)));
  }

  // The promise of empty generators.
  [[gnu::cold, gnu::noinline]] static async_promise& ended() noexcept {
    static async_promise finished(std::true_type{});
    return finished;
  }

  tasks::side_call side;

 private:
  explicit async_promise(std::true_type) noexcept : async_promise() {
    side.done = true;
    side.see_end();
  }
  // A loop gives the same place each time: not stored again (side_call.hpp).
  void give(T& value) noexcept {
    void* const place = std::addressof(value);
    if (side.given != place) [[unlikely]]
      side.given = place;
  }
  std::optional<T> none(tasks::outcome how) {
    if (!side.done) throw_early_end(how);
    side.see_end();
    if (failure_.there()) std::rethrow_exception(failure_.take());
    return std::nullopt;
  }
  static void destroy(tasks::side_call& call) noexcept { call.root().handle().destroy(); }

  tasks::untaken_error failure_;
};

// The result of next(). Move-only; await it at once.
template <class T>
class [[nodiscard]] next_value {
 public:
  explicit next_value(async_promise<T>* promise) noexcept : promise_(promise) {}
  // For traits that query the type of the value. The awaited object is `advanced`.
  bool await_ready() const noexcept;
  std::optional<T> await_resume();

  // The generator has run: it has yielded a value, has ended, or is pending. A call that is
  // cancelled takes nothing (docs/protocols/given_up_waits.md).
  class advanced {
   public:
    static constexpr bool puts_back = true;  // for the branches of when_any
    // lets_others_run: its user does before it continues.
    explicit advanced(async_promise<T>* source, bool lets_others_run) noexcept
        : tagged_(reinterpret_cast<std::uintptr_t>(source) | (lets_others_run ? suspends : 0)) {}
    bool await_ready() const noexcept {
      return tagged_ == 0 || ((tagged_ & suspends) == 0 &&
                              (promise().side.given != nullptr || !promise().side.is_pending()));
    }
    template <std::derived_from<tasks::promise_base> Promise>
    bool await_suspend(std::coroutine_handle<Promise> user) noexcept {
      const bool lets_others_run = (tagged_ & suspends) != 0;
      tagged_ ^= suspends;
      return lets_others_run ? tasks::let_others_run(user.promise())
                             : promise().side.wait(user.promise());
    }
    // The user may have been cancelled after the value was yielded, even if it was yielded at once.
    void take_late(tasks::coroutine& user) noexcept {
      if (tagged_ == 0) return;
      promise().side.own_wait().waiter = &user;
      tagged_ |= suspends;
    }
    std::optional<T> await_resume() {
      if (tagged_ == 0 || (tagged_ & suspends) != 0) [[unlikely]]
        check();
      return promise().take(promise().side.own_wait().ended);
    }

   private:
    async_promise<T>& promise() const noexcept {
      return *reinterpret_cast<async_promise<T>*>(tagged_ & ~suspends);
    }
    void check() {
      if (tagged_ != 0 &&
          !promise().side.keep_if_cancelled(*promise().side.own_wait().waiter->call))
        return;
      throw_early_end(tasks::outcome::cancelled);
    }
    // Tag: it lets others run, and then, that it has waited. A bool would be stored for each value.
    static constexpr std::uintptr_t suspends = 1;
    std::uintptr_t tagged_;  // 0: its user is cancelled
  };
  advanced run_before_suspension(tasks::coroutine& user) const {
    if (user.call->cancelled) [[unlikely]]
      return advanced(nullptr, false);
    if (user.call->spend_start()) [[likely]] {
      advance(user);
      return advanced(promise_, false);
    }
    return advanced(promise_, promise_->side.advance_later(user) && promise_->side.has_ended());
  }

  class limited;
  // Limit the wait, from the co_await on: when the time is over co_await throws timed_out, when a
  // stop is requested cancelled. The generator continues, and the following next() returns its
  // value.
  limited timeout(time_span at_most) && { return limited(promise_, at_most, {}); }
  limited stop(std::stop_token token) && {
    return limited(promise_, std::chrono::nanoseconds::max(), std::move(token));
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
  bool advance(tasks::coroutine& user) const {
    const auto generator = std::coroutine_handle<async_promise<T>>::from_promise(*promise_);
    return promise_->side.advance_and_take(user, generator);
  }
  async_promise<T>* promise_;
};

template <class T>
class [[nodiscard]] next_value<T>::limited {
 public:
  limited(async_promise<T>* promise, time_span at_most, std::stop_token stop) noexcept
      : promise_(promise), at_most_(at_most), stop_(std::move(stop)) {}
  limited&& timeout(time_span at_most) && {
    at_most_ = at_most;
    return std::move(*this);
  }
  limited&& stop(std::stop_token token) && {
    stop_ = std::move(token);
    return std::move(*this);
  }

  class awaiter {
   public:
    static constexpr bool puts_back = true;  // for the branches of when_any
    explicit awaiter(limited&& next) noexcept : next_(std::move(next)) {}
    bool await_ready() const noexcept { return false; }
    template <std::derived_from<tasks::promise_base> Promise>
    bool await_suspend(std::coroutine_handle<Promise> user) {
      tasks::coroutine& awaiting = user.promise();
      if (awaiting.call->cancelled) [[unlikely]]
        return false;
      user_ = &awaiting;
      const bool may_spend = awaiting.call->spend_start();
      // Then it runs in await_resume(): for a wait that is over at once, it must run now or never.
      runs_late_ = !may_spend && next_.at_most_.count() <= 0;
      return runs_late_ ? tasks::let_others_run(awaiting) : suspend(may_spend);
    }
    std::optional<T> await_resume() {
      if (runs_late_) [[unlikely]]
        suspend(true);
      if (user_ == nullptr || next_.promise_->side.keep_if_cancelled(*user_->call)) [[unlikely]]
        throw_early_end(tasks::outcome::cancelled);
      return next_.promise_->take(wait_.ended);
    }

   private:
    bool suspend(bool may_run) {
      return wait_.suspend_for(next_.promise_->side, *user_, next_.at_most_, next_.stop_, may_run);
    }
    limited next_;
    tasks::coroutine* user_ = nullptr;  // null: its call was cancelled before
    bool runs_late_ = false;
    tasks::limited_side_wait wait_;
  };
  awaiter operator co_await() && noexcept { return awaiter(std::move(*this)); }

 private:
  async_promise<T>* promise_;
  std::chrono::nanoseconds at_most_;
  std::stop_token stop_;
};

}  // namespace streams

// A coroutine that co_awaits anything that a task can await, and yields values by co_yield. It runs
// only while its user waits for the next value, and stops at each co_yield: it never runs ahead.
// `co_await g.next()` returns the next value in a std::optional, which is empty at the end.
// Move-only.
//
// Thread: it runs in the turns of the actor (or spawned task) that takes its values, like a task.
// All values are taken by one actor; a generator that waits for nothing may be moved to another
// actor. Cost: a frame of about 400 bytes from the block pool, then about 4 ns for a value that is
// ready, without an allocation. Errors: next() throws an exception of the body once; the generator
// has then ended. next() throws cancelled when the call that awaits it is cancelled; the generator
// is then unchanged, keeps waiting for its event, and no value is lost: next().timeout(span),
// next().stop(token) and when_any(g.next(), …) can be repeated. Lifetime: dropping the generator
// ends it: the operation that it awaits throws cancelled in its body. If that operation cannot end
// at once (I/O), the body ends a little later, in a turn of the same actor; it may therefore refer
// to its own parameters and variables, and to objects that outlive its actor.
//
// GCC 12 destroys the members of an aggregate twice in `co_yield Point{…}`: with that compiler,
// name it and move it in.
//
// Example:
//     troupe::async_generator<int> ticks(int count) {
//       for (int i = 0; i < count; ++i) {
//         co_await troupe::sleep_for(std::chrono::milliseconds(1));
//         co_yield i;
//       }
//     }
//     troupe::task<> show() {
//       auto all = ticks(3);
//       while (auto tick = co_await all.next()) std::cout << *tick << '\n';
//     }
//     int main() {
//       troupe::runtime rt;
//       rt.spawn(show());
//       rt.run();
//     }
template <class T>
class [[nodiscard]] async_generator {
  static_assert(std::is_object_v<T> && std::is_move_constructible_v<T>,
                "troupe: async_generator<T> gives values that can be moved, no references");

 public:
  using promise_type = streams::async_promise<T>;
  using value_type = T;

  async_generator() = default;  // empty
  async_generator(async_generator&& other) noexcept
      : promise_(std::exchange(other.promise_, nullptr)) {}
  async_generator& operator=(async_generator&& other) noexcept {
    std::swap(promise_, other.promise_);
    return *this;
  }
  ~async_generator() {
    if (promise_ != nullptr) promise_->side.drop();
  }

  // The next value; empty at the end, and always after it. One next() at a time.
  streams::next_value<T> next() noexcept {
    if (promise_ == nullptr) [[unlikely]]
      return streams::next_value<T>(&promise_type::ended());
    return streams::next_value<T>(promise_);
  }

 private:
  friend promise_type;
  friend struct streams::access;
  explicit async_generator(promise_type* promise) noexcept : promise_(promise) {}
  promise_type* promise_ = nullptr;
};

namespace streams {

template <class T>
async_generator<T> async_promise<T>::get_return_object() noexcept {
  return async_generator<T>(this);
}

// Access for other parts of the library; not for users.
struct access {
  template <class T>
  static async_promise<T>* promise(async_generator<T>& generator) noexcept {
    return generator.promise_;
  }
};

}  // namespace streams

}  // namespace troupe
