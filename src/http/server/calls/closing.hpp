// closing: when a connection of HTTP/1.1 closes, and whether it lingers then.
//
// Threads: the connection's task and its children, one at a time.
// Invariants
//   L1  A connection that closes after this answer serves no other request.
#pragma once

#include <cstdint>

namespace troupe::http {

class closing {
 public:
  // After the current answer.
  bool is_due() const noexcept { return last_ == last_request::current; }
  // After the answer of the next request, or of the current one.
  bool is_near() const noexcept { return last_ != last_request::unknown; }
  // The peer may still be sending: after the answer the connection reads for a while, so that the
  // peer can see the answer.
  bool lingers() const noexcept { return lingers_; }

  void close_after_next() noexcept {
    if (!is_due()) last_ = last_request::next;
  }
  void close() noexcept { last_ = last_request::current; }
  void linger() noexcept { lingers_ = true; }
  void close_and_linger() noexcept {
    close();
    linger();
  }
  // The server does it by itself, and its peer may still send.
  void close_unasked() noexcept {
    if (!is_due()) linger();
    close();
  }
  // Decides anew whether it lingers.
  void set_lingers(bool on) noexcept { lingers_ = on; }

 private:
  enum class last_request : std::uint8_t { unknown, next, current };
  last_request last_ = last_request::unknown;
  bool lingers_ = false;
};

}  // namespace troupe::http
