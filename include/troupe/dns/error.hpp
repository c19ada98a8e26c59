// resolve_error: why a host has no address.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <string>

#include "troupe/base/error.hpp"

namespace troupe {

// The reasons of a resolve_error.
enum class resolve_failure : std::uint8_t {
  host_not_found,  // there is no such name; another query gives the same result
  no_data,         // the name exists, but has no address of the requested family
  try_again,       // no server gave a valid answer in time; a later query may succeed
  bad_name,        // not a valid host name; no server was asked
  in_simulation,   // under policy::simulated there are no servers; no server was asked
};

// Why there is no address. The text names the host, the reason, and the caller's remedy.
//
// Example:
//     try {
//       throw troupe::resolve_error(troupe::resolve_failure::host_not_found, "no.such.host",
//                                   "no such name");
//     } catch (const troupe::resolve_error& e) {
//       std::cerr << e.host() << ": " << e.what() << '\n';
//     }
class resolve_error : public error {
 public:
  resolve_error(resolve_failure why, const std::string& host, const std::string& detail);
  resolve_failure reason() const noexcept { return reason_; }
  verdict judged() const noexcept override;
  const std::string& host() const noexcept { return host_; }

 private:
  resolve_failure reason_;
  std::string host_;
};

}  // namespace troupe
