// error: TLS errors.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <string>

#include "troupe/base/error.hpp"

namespace troupe {

// The reasons of a tls_error.
enum class tls_failure : std::uint8_t {
  // the peer's certificate is not trusted, not valid now, or not for this host: verify_result()
  // returns the reason
  certificate,
  refused_by_peer,  // the peer sent an alert: it does not accept this end, or has found an error
  // the data is not TLS, or is damaged, or there is no common version, cipher or protocol
  protocol,
  truncated,   // the stream ended early: bytes that the peer sent may be missing
  plain_http,  // the client speaks HTTP without TLS
};

// A connection that cannot be trusted, or no longer; it can only be closed. The text names the
// operation, the peer, OpenSSL's reason, and the caller's remedy.
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

  verdict judged() const noexcept override;
  tls_failure reason() const noexcept { return reason_; }
  // One of OpenSSL's X509_V_ERR_… codes; 0 if the error does not concern a certificate of the peer.
  long verify_result() const noexcept { return verify_result_; }

 private:
  tls_failure reason_;
  long verify_result_;
};

}  // namespace troupe
