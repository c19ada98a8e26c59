#include "durable/state/availability.hpp"

#include <algorithm>

#include "base/invariant.hpp"

namespace troupe::durable::parts {

void availability::change(state to, const std::exception_ptr& why) noexcept {
  TROUPE_INVARIANT(state_ != state::taken || to == state::taken, "V1");
  TROUPE_INVARIANT((to == state::works) == (why == nullptr), "V3");
  state_ = to;
  reason_ = why;
}

void availability::batch_failed(state after, const std::exception_ptr& why) noexcept {
  last_failure_ = why;
  if (is_taken()) return;
  change(after, after == state::works ? nullptr : why);
}

void availability::reading_failed(const std::exception_ptr& why) noexcept {
  last_failure_ = why;
  if (state_ == state::works || state_ == state::away) change(state::away, why);
}

void availability::batch_stored() noexcept {
  pause_ = {};
  if (is_taken()) return;
  TROUPE_INVARIANT(state_ != state::in_doubt, "V2");
  change(state::works, nullptr);
}

void availability::end_doubt() noexcept {
  if (is_taken()) return;
  TROUPE_INVARIANT(state_ == state::in_doubt, "V2");
  pause_ = {};
  change(state::works, nullptr);
}

bool availability::try_again() noexcept {
  if (state_ == state::in_doubt || is_taken()) return false;
  change(state::works, nullptr);
  return true;
}

std::chrono::milliseconds availability::next_pause(std::chrono::milliseconds first,
                                                   std::chrono::milliseconds most) noexcept {
  pause_ = std::clamp(2 * pause_, first, std::max(most, first));
  return pause_;
}

}  // namespace troupe::durable::parts
