#include "troupe/task/groups/foreign_wait.hpp"

#include <exception>
#include <utility>

#include "base/invariant.hpp"
#include "troupe/base/error.hpp"

namespace troupe::tasks {

// The coroutine that the awaitable resumes.
struct foreign_wait::resumer {
  struct promise_type;
  using handle_type = std::coroutine_handle<promise_type>;
  struct last {
    bool await_ready() const noexcept { return false; }
    void await_suspend(handle_type ended) const noexcept { leave(ended); }
    void await_resume() const noexcept {}
  };
  struct promise_type {
    resumer get_return_object() noexcept { return {handle_type::from_promise(*this)}; }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    last final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
    std::atomic<foreign_wait*> wait{nullptr};
    std::atomic<bool> is_left{false};
  };
  static void leave(handle_type left) noexcept {
    // order: acq_rel  the last owner sees the other's writes; pairs with itself (F1)
    if (!left.promise().is_left.exchange(true, std::memory_order_acq_rel)) return;
    TROUPE_INVARIANT(left.done(), "F1");
    left.destroy();
  }
  // Null if the end of the actor came first.
  struct take_wait {
    bool await_ready() const noexcept { return false; }
    bool await_suspend(handle_type awaiting) noexcept {
      wait = take(awaiting);
      return false;
    }
    foreign_wait* await_resume() const noexcept { return wait; }
    foreign_wait* wait = nullptr;
  };
  static foreign_wait* take(handle_type resumed) noexcept {
    // order: acq_rel  whoever resumes it sees the wait that begin_foreign() has stored (F2)
    return resumed.promise().wait.exchange(nullptr, std::memory_order_acq_rel);
  }
  handle_type handle;
};

foreign_wait::resumer foreign_wait::make() {
  foreign_wait* const wait = co_await resumer::take_wait();
  if (wait == nullptr) co_return;
  TROUPE_INVARIANT(wait->resumer_ != nullptr, "F2");
  wait->over(outcome::arrived);
}

std::coroutine_handle<> foreign_wait::begin_foreign(coroutine& user) {
  const resumer fresh = make();
  // order: relaxed  the awaitable publishes the handle, through which others reach it
  fresh.handle.promise().wait.store(this, std::memory_order_relaxed);
  resumer_ = fresh.handle.address();
  begin(user);
  user.call->refill();
  return fresh.handle;
}

void foreign_wait::free_resumer() noexcept {
  std::coroutine_handle<>::from_address(std::exchange(resumer_, nullptr)).destroy();
}

void foreign_wait::end_at_once() noexcept {
  forget();
  free_resumer();
}

foreign_wait::~foreign_wait() {
  if (resumer_ != nullptr) resumer::leave(resumer::handle_type::from_address(resumer_));
}

void foreign_wait::check() const {
  if (waiter->call->cancelled)
    throw cancelled("troupe: co_await of an awaitable of the program's: the call was cancelled");
}

const char* foreign_wait::act_on(sched::message* base, void*, sched::message_act act) {
  if (act == sched::message_act::describe) return "an awaitable of the program's";
  auto& self = static_cast<foreign_wait&>(*static_cast<suspension*>(base));
  if (act == sched::message_act::detach) {
    if (self.cancels_ == nullptr || !self.cancels_(self)) return nullptr;
    self.free_resumer();
    return "detached";
  }
  // The actor ends. Waits that nothing has resumed so far never continue.
  if (act == sched::message_act::reclaim) {
    const auto handle = resumer::handle_type::from_address(self.resumer_);
    self.is_abandoned_ = self.is_abandoned_ || resumer::take(handle) != nullptr;
    if (self.is_abandoned_) return nullptr;
  }
  return arrive(self, act);
}

}  // namespace troupe::tasks
