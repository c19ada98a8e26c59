// client_error: why there is no answer, or no whole one, although a connection could be made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "troupe/base/error.hpp"
#include "troupe/http/fault.hpp"

namespace troupe::http {

enum class client_failure : std::uint8_t {
  bad_url,             // it cannot be the address of anything; nobody was asked
  too_many_redirects,  // more than client_options::redirects
  bad_redirect,        // to something that cannot be followed
  insecure_redirect,   // from https to http
  bad_response,    // what came is no answer of HTTP/1.1, or one that can be read in two ways: why()
  body_too_large,  // more than client_options::body_bytes were to be kept in memory
  too_slow,        // the body came at less than client_options::body_rate
  truncated,       // the connection ended in the middle of the answer
  closed,          // it ended before the answer began
  not_upgraded,    // the server answered the request for a WebSocket with another status: status()
  bad_handshake,   // it began a WebSocket, but not one that was asked for: a subprotocol or an
                   // extension that was not offered
};

// The text names the URL, what was wrong, and what the caller can do.
//
// Example:
//     try { throw troupe::http::client_error(troupe::http::client_failure::closed, "http://a/", "no
//     answer"); } catch (const troupe::http::client_error& e) { std::cerr << e.what() << '\n'; }
class client_error : public error {
 public:
  client_error(client_failure reason, const std::string& url, std::string_view detail,
               fault why = fault::none, int status = 0);
  client_failure reason() const noexcept { return reason_; }
  // Of a bad_response.
  fault why() const noexcept { return why_; }
  // Of an answer that is not_upgraded.
  int status() const noexcept { return status_; }

 private:
  client_failure reason_;
  fault why_;
  int status_;
};

}  // namespace troupe::http
