// client_error: why there is no answer, or no complete one, although a connection was possible.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "troupe/base/error.hpp"
#include "troupe/http/fault.hpp"
#include "troupe/kit/try_later.hpp"

namespace troupe::http {

// The reasons of a client_error.
enum class client_failure : std::uint8_t {
  bad_url,             // no valid URL; no server was asked
  too_many_redirects,  // more than client_options::redirects
  bad_redirect,        // to a URL that cannot be followed
  insecure_redirect,   // from https to http
  bad_response,        // neither HTTP/1.1 nor HTTP/2, or ambiguous: why() returns the reason
  body_too_large,      // more than client_options::body_bytes to keep in memory
  too_slow,            // the body was slower than client_options::body_rate
  truncated,           // the connection ended in the middle of the answer
  closed,              // the connection ended before the answer began
  not_upgraded,        // the server did not accept the WebSocket: status() is its answer
  // the server opened a WebSocket, but with a subprotocol or an extension that was not offered
  bad_handshake,
  proxy_unreachable,  // there is no connection to the proxy
  // the proxy answered with status(), or with invalid data (0), instead of a connection
  proxy_refused,
  not_downloaded,     // a download was answered with status(), which is no file
  part_in_use,        // another download writes the same file
  refused,            // by HTTP/2: the server has not begun the request; it may be sent again
  reset,              // by HTTP/2: the server has given up this request
  decoded_too_large,  // the decoded body is larger than client_options::decoded_body_bytes
  too_much_kept,  // beyond client_options::buffer_bytes, and the client kept most bytes for this
                  // answer
};

// The text names the URL, the error, and the caller's remedy.
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
  verdict judged() const noexcept override;
  // For bad_response.
  fault why() const noexcept { return why_; }
  // For not_upgraded, proxy_refused and not_downloaded.
  int status() const noexcept { return status_; }

 private:
  client_failure reason_;
  fault why_;
  int status_;
};

// All connections to an origin are in use, and the request cannot wait for a free connection, or
// has waited too long. Nothing was sent. It is a try_later: overload_as_503() makes a 503 of it,
// and retry() waits.
//
// Example:
//     try {
//       throw troupe::http::origin_full(troupe::http::origin_full::limit::requests_waiting,
//                                       "http://a", 1'024);
//     } catch (const troupe::try_later& e) {
//       std::cerr << e.what() << '\n';
//     }
class origin_full : public try_later {
 public:
  enum class limit : std::uint8_t {
    requests_waiting,  // client_options::requests_waiting others wait already
    waiting_time,      // it has waited for client_options::waiting_time
  };
  origin_full(limit which, const std::string& origin, std::size_t most);
  verdict judged() const noexcept override {
    return {verdict::party::us, verdict::effect::none, verdict::again::later};
  }
  limit which() const noexcept { return which_; }

 private:
  limit which_;
};

}  // namespace troupe::http
