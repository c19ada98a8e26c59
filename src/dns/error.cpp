#include "troupe/dns/error.hpp"

namespace troupe {
namespace {

const char* what_to_do(resolve_failure why) noexcept {
  switch (why) {
    case resolve_failure::host_not_found:
      return "check the name";
    case resolve_failure::no_data:
      return "ask for the other family of addresses, or for another name";
    case resolve_failure::try_again:
      return "try again later, or other servers";
    case resolve_failure::bad_name:
      return "check the name";
    case resolve_failure::in_simulation:
      return "give an address in digits, or localhost";
  }
  return "";
}

}  // namespace

resolve_error::resolve_error(resolve_failure why, const std::string& host,
                             const std::string& detail)
    : error("troupe: resolve \"" + host + "\": " + detail + ": " + what_to_do(why)),
      reason_(why),
      host_(host) {}

verdict resolve_error::judged() const noexcept {
  using enum verdict::party;
  using enum verdict::again;
  switch (reason_) {
    case resolve_failure::host_not_found:
    case resolve_failure::no_data:
      return {upstream, verdict::effect::none, never};
    case resolve_failure::try_again:
      return {upstream, verdict::effect::none, later};
    default:
      return {caller, verdict::effect::none, never};
  }
}

}  // namespace troupe
