// handshakes: the TLS handshakes of one server: how many are under way, and how they have ended.
//
// A listener with TLS accepts by these limits: the server's and the handshakes' limit. A
// listener without TLS is not affected by the second one. One client makes at most its share of
// handshakes at a time; its further connections are accepted, and wait in line. Silent clients
// therefore take neither all handshakes nor the listener's backlog.
// Threads: any.
//
// Rejected: to end handshakes of a client beyond its share; a slow but honest client that opens
// many connections looks the same as a silent client.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/accounts/account.hpp"
#include "http/server/numbers/event_counts.hpp"
#include "troupe/http/server.hpp"
#include "troupe/protocol/admission.hpp"
#include "troupe/sync/semaphore.hpp"
#include "troupe/task/task.hpp"
#include "troupe/tls/error.hpp"

namespace troupe::http {

// The server that the handshakes are a part of.
class whole_server : public protocols::admission {
 public:
  using admission::admission;
  // Ends handshakes that have taken a second or more, the longest ones first.
  virtual void shed_handshakes() = 0;

 protected:
  ~whole_server() = default;
};

// How a handshake has ended, or a connection after its handshake.
enum class secure_event : std::uint8_t {
  done,
  resumed,  // besides `done`
  plain_http,
  bad_certificate,
  refused_by_peer,
  bad_protocol,
  truncated,
  timed_out,
  ended_by_server,
  lost,
  unannounced_end,  // after the handshake, as is the next one
  damaged,
  count_of_events,
};

// The events as which a failed handshake, and a failure after the handshake, are counted.
secure_event handshake_event_of(tls_failure why) noexcept;
inline secure_event later_event_of(tls_failure why) noexcept {
  return why == tls_failure::truncated ? secure_event::unannounced_end : secure_event::damaged;
}

class handshakes final : public protocols::admission {
  // The handshakes of one client.
  struct line {
    explicit line(std::size_t share) : places(share) {}
    semaphore places;
    std::size_t uses = 0;
    const std::string* name = nullptr;
  };

 public:
  handshakes(whole_server& server, std::size_t most) noexcept;

  bool is_full() noexcept override;
  void shed() override;

  void count(secure_event event) noexcept { counts_.count(event); }
  handshake_counts counts() const noexcept;

  // One handshake of a client: it waits in line, and then it is under way. Keeps the server's state
  // alive.
  class ticket {
   public:
    // Throws std::bad_alloc.
    ticket(std::shared_ptr<handshakes> owner, const base::ledger::peer& client);
    ticket(ticket&& other) noexcept = default;
    ticket& operator=(ticket&& other) noexcept {
      std::swap(handshakes_, other.handshakes_);
      std::swap(line_, other.line_);
      std::swap(place_, other.place_);
      std::swap(is_under_way_, other.is_under_way_);
      return *this;
    }
    ~ticket() { give_back(); }

    // Returns false when it has to wait in line.
    bool try_begin();
    // Waits in line. Returns false when the stop was requested first.
    task<bool> begin(std::stop_token stop);
    void give_back() noexcept;
    // Call it before give_back().
    void count(secure_event event) noexcept { handshakes_->count(event); }

   private:
    void note_begun() noexcept;

    std::shared_ptr<handshakes> handshakes_;
    line* line_;  // null for clients without a share
    semaphore::permit place_;
    bool is_under_way_ = false;
  };

 private:
  line* join(const base::ledger::peer& client);
  void leave(line& entry) noexcept;
  // order: relaxed (both)  a count, read as a hint by the task that accepts
  void begin() noexcept { under_way_.fetch_add(1, std::memory_order_relaxed); }
  void end() noexcept {
    under_way_.fetch_sub(1, std::memory_order_relaxed);  // order: relaxed  as in begin()
    left();
  }

  whole_server& server_;
  const std::size_t most_, share_;
  std::atomic<std::size_t> under_way_{0};
  std::mutex mutex_;
  std::unordered_map<std::string, line> lines_;  // guarded by the mutex
  event_counts<secure_event, secure_event::count_of_events> counts_;
};

}  // namespace troupe::http
