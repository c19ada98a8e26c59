#include "troupe/asio/wait.hpp"

#include <utility>

#include "base/invariant.hpp"
#include "troupe/base/error.hpp"

namespace troupe::parts {

asio_wait::asio_wait(void (*post_cancel)(asio_wait&)) noexcept
    : suspension(&act_on),
      timer(&on_time, tasks::timer_source::io_timeout),
      post_cancel_(post_cancel) {
  is_foreign = true;  // an operation may ignore that it is cancelled
}

bool asio_wait::begin(tasks::coroutine& suspended, const asio_limits& within) {
  tasks::async_call& call = *suspended.call;
  const bool is_stopped = call.cancelled || within.stop.stop_requested();
  if (is_stopped || within.at_most.count() <= 0) {
    // order: relaxed  the wait is not shared yet
    why_.store(is_stopped ? reason::cancelled : reason::timed_out, std::memory_order_relaxed);
    return false;
  }
  open_ = detail::hold_here("asio_token");
  // order: relaxed  Asio publishes the handler, through which other threads reach the wait
  parties_.store(2, std::memory_order_relaxed);
  limited = within.at_most != time_span::max() || within.stop.stop_possible();
  suspension::begin(suspended);
  call.refill();
  clock_ = call.at->clock;
  return true;
}

void asio_wait::started(const asio_limits& within) noexcept {
  try {
    if (within.at_most != time_span::max()) {
      tasks::arm(*clock_, *this, tasks::due_in(*clock_, within.at_most));
      armed_ = true;
    }
    if (within.stop.stop_possible()) stop_.emplace(within.stop, end_it{*this});
  } catch (...) {
    // the caller asked for a limit: the operation must not run without it
    end_early(reason::timed_out);
  }
  leave();
}

void asio_wait::finish() noexcept {
  // order: relaxed  only the handler writes it
  TROUPE_INVARIANT(!finished_.load(std::memory_order_relaxed), "A2");
  // order: release  publishes the result to a request that finds it; pairs with is_finished/acquire
  finished_.store(true, std::memory_order_release);
  leave();
}

bool asio_wait::enter() noexcept {
  // order: relaxed (both)  nothing is read before the party acts, and its leave publishes its acts
  std::uint32_t now = parties_.load(std::memory_order_relaxed);
  while (now != 0) {
    if (parties_.compare_exchange_weak(now, now + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

void asio_wait::leave() noexcept {
  // order: acq_rel  the last party sees the acts of the others; pairs with itself
  const std::uint32_t before = parties_.fetch_sub(1, std::memory_order_acq_rel);
  TROUPE_INVARIANT(before != 0, "A1");
  if (before != 1) return;
  // The program must not be out of work before the end of the wait has reached its actor, and the
  // frame may be freed as soon as it has.
  const hold open = std::move(open_);
  over(tasks::outcome::arrived);
}

// Any thread.
void asio_wait::end_early(reason why) noexcept {
  if (!enter()) return;
  reason none = reason::none;
  // order: relaxed  read after the end of the wait, which orders it
  if (!why_.compare_exchange_strong(none, why, std::memory_order_relaxed)) return leave();
  post_cancel_(*this);
}

void asio_wait::end_limits() noexcept {
  stop_.reset();  // waits for a callback that is running
  if (armed_) tasks::cancel(*clock_, *this);
  armed_ = false;
}

void asio_wait::check(bool has_result) const {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  if (has_result) return;
  check_cancelled();
  throw broken_promise(
      "troupe: asio_token: the operation ended without a result; its execution context was "
      "destroyed before it");
}

void asio_wait::check_cancelled() const {
  // order: relaxed  ordered by the end of the wait
  switch (why_.load(std::memory_order_relaxed)) {
    case reason::none:
      return;
    case reason::timed_out:
      throw timed_out("troupe: an operation of Asio: it did not come about in time");
    case reason::cancelled:
      throw cancelled("troupe: an operation of Asio: cancelled");
  }
}

void asio_wait::on_time(timer& self) noexcept {
  static_cast<asio_wait&>(self).end_early(reason::timed_out);
}

const char* asio_wait::act_on(sched::message* base, void*, sched::message_act act) {
  if (act == sched::message_act::describe) return "an operation of Asio";
  auto& self = static_cast<asio_wait&>(*static_cast<suspension*>(base));
  if (act == sched::message_act::detach) {
    self.end_early(reason::cancelled);
    return nullptr;  // the end of the operation is on its way
  }
  return arrive(self, act);
}

}  // namespace troupe::parts
