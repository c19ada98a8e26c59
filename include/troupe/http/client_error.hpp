// client_error: why there is no answer, or no complete one, although a connection was possible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "troupe/base/error.hpp"
#include "troupe/http/fault.hpp"

namespace troupe::http {

// The reasons of a client_error.
enum class client_failure : std::uint8_t {
  bad_url,             // no valid URL; no server was asked
  too_many_redirects,  // more than client_options::redirects
  bad_redirect,        // to a URL that cannot be followed
  insecure_redirect,   // from https to http
  bad_response,        // not HTTP/1.1, or ambiguous: why() says the reason
  body_too_large,      // more than client_options::body_bytes to keep in memory
  too_slow,            // the body was slower than client_options::body_rate
  truncated,           // the connection ended in the middle of the answer
  closed,              // the connection ended before the answer began
  not_upgraded,        // the server did not accept the WebSocket: status() is its answer
  // the server opened a WebSocket, but with a subprotocol or an extension that was not offered
  bad_handshake,
};

// The text names the URL, the error, and what the caller can do.
//
// Example:
//     try {
//       throw troupe::http::client_error(troupe::http::client_failure::closed, "http://a/",
//                                        "no answer");
//     } catch (const troupe::http::client_error& e) {
//       std::cerr << e.what() << '\n';
//     }
class client_error : public error {
 public:
  client_error(client_failure reason, const std::string& url, std::string_view detail,
               fault why = fault::none, int status = 0);
  client_failure reason() const noexcept { return reason_; }
  // For bad_response.
  fault why() const noexcept { return why_; }
  // For not_upgraded.
  int status() const noexcept { return status_; }

 private:
  client_failure reason_;
  fault why_;
  int status_;
};

}  // namespace troupe::http
