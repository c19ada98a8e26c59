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

}  // namespace troupe::cluster
