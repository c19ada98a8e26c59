#include "troupe/streams/select.hpp"

#include <algorithm>

namespace troupe::streams {

bool select_wait::any_ready() const noexcept {
  return std::ranges::any_of(sides_, [](const tasks::side_call* side) { return side->is_ready(); });
}

bool select_wait::suspend(tasks::coroutine& user) {
  // the actions of a wait that is over at once run now or never
  const bool later = at_most_.count() > 0 && !user.call->spend_start();
  bool ready = false;
  for (tasks::side_call* const side : sides_)
    ready = (later ? side->advance_later_and_keep(user) : side->advance(user)) || ready;
  const bool waits = !ready && !user.call->cancelled && at_most_.count() > 0;
  if (!ready && !waits)
    wait_.ended = user.call->cancelled ? tasks::outcome::cancelled : tasks::outcome::timed_out;
  if (waits) {
    for (tasks::side_call* const side : sides_) wait_.add(*side);
    wait_.suspend_in(user);
    if (at_most_ != std::chrono::nanoseconds::max()) wait_.limit(at_most_, {});
    return true;
  }
  for (tasks::side_call* const side : sides_) side->hold();
  return false;
}

bool select_wait::await_resume() const {
  if (any_ready()) return true;
  if (wait_.ended == tasks::outcome::timed_out) return false;
  throw_early_end(wait_.ended);
}

bool select_in_crowd::suspend(tasks::coroutine& user) {
  crowd_.settle();
  crowd_.ended = tasks::outcome::arrived;
  const bool later = !user.call->spend_start();
  for (tasks::side_call* const side : {stream_, begins_}) {
    if (side != nullptr && crowd_.advance(*side, user, later)) waits_ = false;
  }
  if (!waits_) return false;
  if (user.call->cancelled) {
    crowd_.ended = tasks::outcome::cancelled;
    return false;
  }
  crowd_.suspend_in(user);
  return true;
}

void select_in_crowd::await_resume() const {
  crowd_.settle();
  if (crowd_.ended != tasks::outcome::arrived) throw_early_end(crowd_.ended);
}

}  // namespace troupe::streams
