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
    case failure::refused:
      return "refused";
  }
  return "unknown";
}

}  // namespace troupe::nats
