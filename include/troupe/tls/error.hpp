// The errors of TLS.
#pragma once

#include <cstdint>
#include <string>

#include "troupe/base/error.hpp"

namespace troupe {

enum class tls_failure : std::uint8_t {
  // the peer's certificate is not trusted, not valid now, or not this host's: verify_result() says
  // which
  certificate,
  refused_by_peer,  // it sent an alert: it does not accept us, or has found something wrong
  // what came is no TLS, or damaged, or there is no common version, cipher or protocol
  protocol,
  truncated,  // the stream ended in the middle: what came may not be all that was sent
};

// A connection that cannot be trusted, or not any more: it is of no use but to be closed. The text
// names the operation, the peer, OpenSSL's reason, and what the caller can do.
//
// Example:
//     try {
//       throw troupe::tls_error(troupe::tls_failure::truncated, "read", "example.org",
//                               "unexpected eof");
//     } catch (const troupe::tls_error& e) {
//       std::cerr << e.what() << '\n';
//     }
class tls_error : public error {
 public:
  tls_error(tls_failure why, const char* operation, const std::string& peer,
            const std::string& detail, long verify_result = 0);

  tls_failure reason() const noexcept { return reason_; }
  // One of OpenSSL's X509_V_ERR_…; 0 when it was not about a certificate of the peer's.
  long verify_result() const noexcept { return verify_result_; }

 private:
  tls_failure reason_;
  long verify_result_;
};

}  // namespace troupe
