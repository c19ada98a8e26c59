#include "troupe/streams/select.hpp"

#include <algorithm>

namespace troupe::streams {

bool select_wait::any_ready() const noexcept {
  return std::ranges::any_of(of_, [](const tasks::side_call* one) { return one->is_ready(); });
}

bool select_wait::suspend(tasks::coroutine& user) {
  // those of a wait that is over at once run now or never
  const bool later = at_most_.count() > 0 && !user.call->spend_start();
  bool ready = false;
  for (tasks::side_call* const one : of_)
    ready = (later ? one->advance_later_and_keep(user) : one->advance(user)) || ready;
  const bool waits = !ready && !user.call->cancelled && at_most_.count() > 0;
  if (!ready && !waits)
    wait_.ended = user.call->cancelled ? tasks::outcome::cancelled : tasks::outcome::timed_out;
  if (waits) {
    for (tasks::side_call* const one : of_) wait_.add(*one);
    wait_.suspend_in(user);
    if (at_most_ != std::chrono::nanoseconds::max()) wait_.limit(at_most_, {});
    return true;
  }
  for (tasks::side_call* const one : of_) one->hold();
  return false;
}

bool select_wait::await_resume() const {
  if (any_ready()) return true;
  if (wait_.ended == tasks::outcome::timed_out) return false;
  throw_early_end(wait_.ended);
}

bool select_in_crowd::suspend(tasks::coroutine& user) {
  of_.settle();
  of_.ended = tasks::outcome::arrived;
  const bool later = !user.call->spend_start();
  for (tasks::side_call* const one : {stream_, begins_}) {
    if (one != nullptr && of_.advance(*one, user, later)) waits_ = false;
  }
  if (!waits_) return false;
  if (user.call->cancelled) {
    of_.ended = tasks::outcome::cancelled;
    return false;
  }
  of_.suspend_in(user);
  return true;
}

void select_in_crowd::await_resume() const {
  of_.settle();
  if (of_.ended != tasks::outcome::arrived) throw_early_end(of_.ended);
}

}  // namespace troupe::streams
