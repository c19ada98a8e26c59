// fault: what is wrong with a message, and the status with which a server answers it.
#pragma once

#include <cstdint>
#include <string>

#include "troupe/base/error.hpp"

namespace troupe::http {

enum class fault : std::uint8_t {
  none,
  // anything but METHOD SP TARGET SP HTTP/1.x CRLF, or HTTP/1.x SP STATUS SP TEXT CRLF
  bad_start_line,
  bad_target,      // of a form that the method does not take, or with bytes that no target has
  bad_version,     // neither HTTP/1.0 nor HTTP/1.1
  unknown_method,  // CONNECT among them: this is no proxy
  target_too_long,
  head_too_large,
  too_many_fields,
  bad_field,     // a name that is no token, space before the colon, a control byte
  folded_field,  // a line that continues the one before
  bad_line_end,  // CR or LF alone
  no_host,
  several_hosts,
  bad_host,
  bad_length,         // no number, several of them, or too great for 64 bits
  length_and_coding,  // Content-Length beside Transfer-Encoding
  bad_coding,         // chunked is not the last, or there twice, or HTTP/1.0 has one
  unknown_coding,     // another one than chunked
  bad_chunk,
  chunk_line_too_long,
  chunk_extensions_too_long,  // those of all chunks together
  bad_trailer,                // a field there that says how long the message is, or where it goes
  bad_expectation,            // another one than 100-continue
  body_too_large,
  too_slow,   // the head or the body did not come in time
  truncated,  // the peer ended in the middle
};

// 400, 408, 413, 414, 417, 431, 501, 505.
int status_of(fault one) noexcept;
// "two Host fields", …
const char* text_of(fault one) noexcept;

// The peer's message is refused. Thrown by what reads a body; a handler that lets it pass has the
// request answered with its status.
//
// Example:
//     try { throw troupe::http::refused(troupe::http::fault::body_too_large); }
//     catch (const troupe::http::refused& e) { std::cerr << e.status() << ' ' << e.what() << '\n';
//     }
class refused : public error {
 public:
  explicit refused(fault why);
  fault why() const noexcept { return why_; }
  int status() const noexcept { return status_of(why_); }

 private:
  fault why_;
};

}  // namespace troupe::http
