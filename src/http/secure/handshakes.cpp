#include "http/secure/handshakes.hpp"

#include "http/server/server_state.hpp"

namespace troupe::http {

secure_event handshake_event_of(tls_failure why) noexcept {
  switch (why) {
    case tls_failure::certificate:
      return secure_event::bad_certificate;
    case tls_failure::refused_by_peer:
      return secure_event::refused_by_peer;
    case tls_failure::protocol:
      return secure_event::bad_protocol;
    case tls_failure::truncated:
      return secure_event::truncated;
    case tls_failure::plain_http:
      return secure_event::plain_http;
  }
  return secure_event::bad_protocol;
}

bool handshakes::is_full() noexcept {
  // order: relaxed  a hint: the task that accepts checks again
  return under_way_.load(std::memory_order_relaxed) >= most_ || of_.is_full();
}

void handshakes::shed() {
  if (of_.is_full()) {
    of_.shed();
  } else {
    of_.shed_handshakes();
  }
}

handshake_counts handshakes::counts() const noexcept {
  handshake_counts made;
  // order: relaxed  a statistic
  made.under_way = under_way_.load(std::memory_order_relaxed);
  made.done = counts_.of(secure_event::done);
  made.resumed = counts_.of(secure_event::resumed);
  made.plain_http = counts_.of(secure_event::plain_http);
  made.bad_certificate = counts_.of(secure_event::bad_certificate);
  made.refused_by_peer = counts_.of(secure_event::refused_by_peer);
  made.bad_protocol = counts_.of(secure_event::bad_protocol);
  made.truncated = counts_.of(secure_event::truncated);
  made.timed_out = counts_.of(secure_event::timed_out);
  made.ended_by_server = counts_.of(secure_event::ended_by_server);
  made.lost = counts_.of(secure_event::lost);
  made.unannounced_ends = counts_.of(secure_event::unannounced_end);
  made.damaged = counts_.of(secure_event::damaged);
  return made;
}

}  // namespace troupe::http
