// live_connection: a connection of a server as the server's list of them has it: its phase, the end
// that is requested of it, and its socket. It is the part of a connection that other threads use.
//
// Threads: the connection's own task. Any thread that holds the server's mutex may also read the
// clock, and call the functions of the first part.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/accounts/account.hpp"
#include "http/server/calls/connection_clock.hpp"
#include "http/server/calls/requested_end.hpp"
#include "troupe/base/intrusive_list.hpp"
#include "troupe/http/transport.hpp"

namespace troupe {
class stream;
}

namespace troupe::http {

struct server_state;

inline constexpr std::int64_t soon_ns = 1'000'000'000;  // for the next request to come

class live_connection : public transport {
 public:
  using phase = connection_clock::phase;
  using ending = connection_ending;

  // `client`: whose share the connection's memory counts against.
  explicit live_connection(base::ledger::peer& client) noexcept : client_(client) {}
  live_connection(const live_connection&) = delete;
  live_connection& operator=(const live_connection&) = delete;

  // ---- any thread that holds the server's mutex ----

  // The operation that the connection awaits ends as cancelled. Returns whether this reason is a
  // new one, which is then to be counted.
  bool request_end(ending why) noexcept { return requested_.request(why, speaks_h2_); }
  const connection_clock& clock() const noexcept { return clock_; }
  // Since when a head has been coming, of HTTP/1.1, on a connection that counts for no client;
  // never_ns if none is. `head_time`: the time that a head may take.
  std::int64_t unnamed_since_ns(std::chrono::nanoseconds head_time) const noexcept;
  // The time when the connection is to be parked if no bytes come before; never_ns if it must not
  // park.
  std::int64_t parking_ns() const noexcept;
  // Call it in a turn: nothing more comes or goes, whatever the connection's task does.
  void shut() noexcept;

  // ---- the connection's thread ----

  // The connection speaks HTTP/2 from its beginning, when it is not in the server's list yet.
  void note_h2() noexcept { speaks_h2_ = true; }

 protected:
  virtual ~live_connection() = default;
  // The stream that bytes are read from. With TLS it is the stream below TLS.
  virtual stream& wire() noexcept = 0;

  base::ledger::peer& client_;
  requested_end requested_;
  connection_clock clock_;
  // A normal end would also end the answer's body, which is not complete: the connection is reset
  // instead.
  std::atomic<bool> resets_{false};

 private:
  friend struct server_state;

  bool speaks_h2_ = false;  // written by the connection's own thread before it is in the list, and
                            // inside the server's mutex later
  int fd_ = -1;             // negative while the connection is not in the server's list
  base::list_link<live_connection> link_;  // in that list
};

}  // namespace troupe::http
