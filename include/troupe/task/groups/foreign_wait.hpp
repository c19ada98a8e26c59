// foreign_wait: the wait of a coroutine of the library for an awaitable that is not the library's.
// For the library's own use; users meet `co_await` of an awaitable of theirs.
//
// The awaitable gets the handle of a coroutine of its own (`resumer`), which any thread may
// resume: that ends the wait, and the coroutine that awaits continues in a turn of its actor.
// Invariants
//   F1  the resumer has two owners, the wait and the party that resumes it. The last owner that
//       leaves frees it; the wait alone does if nothing will resume it.
//   F2  of a resumption and the end of the actor, the first takes the address of the wait out of
//       the resumer. A resumption that finds none touches no wait.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <concepts>
#include <coroutine>
#include <type_traits>
#include <utility>

#include "troupe/task/async_call.hpp"

namespace troupe::tasks {

// Converts to the handle of any coroutine, and is none: an await_suspend that is a template, such
// as one that passes the handle on to an awaitable of the library, does not take it.
struct any_handle {
  operator std::coroutine_handle<>() const noexcept;
};
template <class Awaiter>
concept foreign_awaiter = requires(Awaiter& awaiter, any_handle user) {
  awaiter.await_suspend(user);
};
// The object of which co_await calls await_ready() and the others.
template <class Awaitable>
decltype(auto) awaiter_of(Awaitable&& awaited) {
  if constexpr (requires { std::forward<Awaitable>(awaited).operator co_await(); }) {
    return std::forward<Awaitable>(awaited).operator co_await();
  } else if constexpr (requires { operator co_await(std::forward<Awaitable>(awaited)); }) {
    return operator co_await(std::forward<Awaitable>(awaited));
  } else {
    return std::forward<Awaitable>(awaited);
  }
}
template <class Awaitable>
using foreign_awaiter_type = decltype(awaiter_of(std::declval<Awaitable>()));
template <class Awaitable>
concept foreign_awaitable =
    foreign_awaiter<std::remove_reference_t<foreign_awaiter_type<Awaitable>>>;

class foreign_wait : public suspension {
 public:
  ~foreign_wait();

 protected:
  using cancels = bool (*)(foreign_wait&) noexcept;
  explicit foreign_wait(cancels can_end) noexcept : suspension(&act_on), cancels_(can_end) {
    is_foreign = can_end == nullptr;
  }
  // Throws std::bad_alloc. Otherwise the wait has begun, and may be over by now.
  std::coroutine_handle<> begin_foreign(coroutine& user);
  // It was not suspended after all.
  void end_at_once() noexcept;
  // A call that is cancelled has taken nothing.
  void check() const;

 private:
  struct resumer;
  static resumer make();
  static const char* act_on(sched::message*, void*, sched::message_act);
  void free_resumer() noexcept;

  const cancels cancels_;
  void* resumer_ = nullptr;  // the address of its coroutine
  bool is_abandoned_ = false;
};

// The wait that `co_await awaited` becomes in a coroutine of the library. A call that is cancelled
// begins no wait, and calls no await_resume(): it throws cancelled, and the awaiter is destroyed
// with its arguments. A member `bool await_cancel() noexcept` of the awaiter ends the wait of a
// call that is cancelled: it returns true if the handle will not be resumed. Without this member
// such a call waits until the handle is resumed.
template <class Awaitable>
class foreign_await final : foreign_wait {
  using awaiter = foreign_awaiter_type<Awaitable>;

 public:
  explicit foreign_await(Awaitable&& awaited)
      : foreign_wait(how_to_cancel()), awaiter_(awaiter_of(std::forward<Awaitable>(awaited))) {}
  foreign_await(foreign_await&&) = delete;
  bool await_ready() const noexcept { return false; }
  template <std::derived_from<coroutine> Promise>
  bool await_suspend(std::coroutine_handle<Promise> user) {
    return suspend(user.promise());
  }
  decltype(auto) await_resume() {
    check();
    return awaiter_.await_resume();
  }

 private:
  static constexpr cancels how_to_cancel() noexcept {
    if constexpr (requires(std::remove_reference_t<awaiter> & given) {
                    { given.await_cancel() } -> std::convertible_to<bool>;
                  }) {
      return [](foreign_wait& base) noexcept {
        return static_cast<bool>(static_cast<foreign_await&>(base).awaiter_.await_cancel());
      };
    } else {
      return nullptr;
    }
  }
  bool suspend(coroutine& user) {
    waiter = &user;
    if (user.call->cancelled) return false;
    if (awaiter_.await_ready()) return suspend_ready(user);
    const std::coroutine_handle<> handle = begin_foreign(user);
    try {
      using how = decltype(awaiter_.await_suspend(handle));
      if constexpr (std::is_void_v<how>) {
        awaiter_.await_suspend(handle);
        return true;
      } else if constexpr (std::convertible_to<how, bool> &&
                           !std::convertible_to<how, std::coroutine_handle<>>) {
        if (awaiter_.await_suspend(handle)) return true;
      } else {
        const std::coroutine_handle<> follower = awaiter_.await_suspend(handle);
        follower.resume();
        return true;
      }
    } catch (...) {
      end_at_once();
      throw;
    }
    end_at_once();
    return false;
  }

  awaiter awaiter_;
};

}  // namespace troupe::tasks
