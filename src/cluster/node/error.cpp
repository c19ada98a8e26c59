#include "troupe/cluster/error.hpp"

namespace troupe::cluster {

const char* name_of(failure kind) noexcept {
  switch (kind) {
    case failure::unreachable:
      return "unreachable";
    case failure::lost:
      return "lost";
    case failure::unknown_method:
      return "unknown_method";
    case failure::too_large:
      return "too_large";
    case failure::full:
      return "full";
    case failure::malformed:
      return "malformed";
    case failure::stopped:
      return "stopped";
    case failure::denied:
      return "denied";
  }
  return "unknown";
}

verdict error::judged() const noexcept {
  using enum verdict::party;
  using enum verdict::effect;
  using enum verdict::again;
  switch (kind_) {
    case failure::unreachable:
    case failure::full:
      return {upstream, none, later};
    case failure::lost:
      return {upstream, unknown, later};
    case failure::malformed:
      return {peer, unknown, never};
    case failure::stopped:
      return {us, none, never};
    default:
      return {caller, none, never};
  }
}

// Its handler has thrown: only the handler could know which work it had done before.
verdict remote_exception::judged() const noexcept {
  return {verdict::party::upstream, verdict::effect::unknown, verdict::again::never};
}

}  // namespace troupe::cluster
