// tls_certificate: the contents of a peer's certificate.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace troupe {

// The contents of a certificate.
//
// Example (declarations):
//     std::string who_is(const troupe::tls_certificate& one) {
//       return one.subject + ", signed by " + one.issuer;
//     }
struct tls_certificate {
  std::string subject, issuer;     // "CN=example.org,O=…"
  std::string serial;              // in hexadecimal digits
  std::vector<std::string> names;  // hosts and addresses for which it is valid
  std::chrono::sys_seconds not_before, not_after;
  std::string sha256;  // of the whole certificate, in hexadecimal digits
};

}  // namespace troupe
