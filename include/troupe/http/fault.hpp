// fault: the error in a message, and the status with which a server answers it.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>
#include <string>

#include "troupe/base/error.hpp"

namespace troupe::http {

// The reasons for which a message is refused.
enum class fault : std::uint8_t {
  none,
  // not METHOD SP TARGET SP HTTP/1.x CRLF, nor HTTP/1.x SP STATUS SP TEXT CRLF
  bad_start_line,
  bad_target,      // a form that the method does not allow, or bytes that no target may contain
  bad_version,     // neither HTTP/1.0 nor HTTP/1.1
  unknown_method,  // including CONNECT: this is no proxy
  target_too_long,
  head_too_large,
  too_many_fields,
  bad_field,     // an invalid name, space before the colon, or a control byte
  folded_field,  // a line that continues the line before
  bad_line_end,  // CR or LF alone
  no_host,
  several_hosts,
  bad_host,
  bad_length,         // not a number, several of them, or larger than 64 bits
  length_and_coding,  // Content-Length beside Transfer-Encoding
  bad_coding,      // chunked is not the last coding, or is there twice, or the version is HTTP/1.0
  unknown_coding,  // a coding other than chunked
  bad_chunk,
  chunk_line_too_long,
  chunk_extensions_too_long,  // of all chunks together
  bad_trailer,                // a trailer field about the message's length or its destination
  bad_expectation,            // an expectation other than 100-continue
  body_too_large,
  too_slow,                // the head or the body did not arrive in time
  truncated,               // the peer ended in the middle of the message
  bad_frames,              // by HTTP/2: it breaks the rules, or a limit
  unknown_content_coding,  // of a body that is to be decoded
  bad_content,             // the body does not match its Content-Encoding
  over_budget,             // too much is kept for this client (server_options::buffer_bytes)
};

// 400, 408, 413, 414, 415, 417, 431, 501, 503, 505.
int status_of(fault reason) noexcept;
// "there are several Host fields", …
const char* text_of(fault reason) noexcept;

// The peer's message is refused. Thrown by functions that read a body. If a handler does not catch
// it, the server answers the request with its status.
//
// Example:
//     try {
//       throw troupe::http::refused(troupe::http::fault::body_too_large);
//     } catch (const troupe::http::refused& e) {
//       std::cerr << e.status() << ' ' << e.what() << '\n';
//     }
class refused : public error {
 public:
  explicit refused(fault why);
  fault why() const noexcept { return why_; }
  int status() const noexcept { return status_of(why_); }
  verdict judged() const noexcept override;

 private:
  fault why_;
};

}  // namespace troupe::http
