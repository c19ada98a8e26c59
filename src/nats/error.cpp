#include "troupe/nats/error.hpp"

namespace troupe::nats {

const char* name_of(failure kind) noexcept {
  switch (kind) {
    case failure::unreachable:
      return "unreachable";
    case failure::denied:
      return "denied";
    case failure::lost:
      return "lost";
    case failure::no_responders:
      return "no_responders";
    case failure::closed:
      return "closed";
    case failure::bad_subject:
      return "bad_subject";
    case failure::too_large:
      return "too_large";
    case failure::too_much_kept:
      return "too_much_kept";
    case failure::refused:
      return "refused";
  }
  return "unknown";
}

verdict error::judged() const noexcept {
  using enum verdict::party;
  using enum verdict::again;
  const auto ran = may_have_run_ ? verdict::effect::unknown : verdict::effect::none;
  switch (kind_) {
    case failure::unreachable:
    case failure::lost:
    case failure::no_responders:
      return {upstream, ran, later};
    case failure::refused:
      return {upstream, ran, never};
    default:
      return {caller, ran, never};
  }
}

// The codes are HTTP's: 4xx for an error of the caller, 503 for a stream without a leader.
verdict stream_error::judged() const noexcept {
  using enum verdict::party;
  using enum verdict::again;
  if (code_ >= 400 && code_ < 500) return {caller, verdict::effect::none, never};
  return {upstream, verdict::effect::none, code_ == 503 ? later : never};
}

}  // namespace troupe::nats
