// handshakes: the TLS handshakes of one server: how many are under way, and how they have ended.
//
// A listener with TLS accepts by these limits: those of the server, and that of handshakes. A
// listener without TLS is not affected by the second one.
// Threads: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "http/server/event_counts.hpp"
#include "troupe/http/server.hpp"
#include "troupe/protocol/admission.hpp"
#include "troupe/tls/error.hpp"

namespace troupe::http {

struct server_state;

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

// What the failure of a handshake counts as, and that of a connection after its handshake.
secure_event handshake_event_of(tls_failure why) noexcept;
inline secure_event later_event_of(tls_failure why) noexcept {
  return why == tls_failure::truncated ? secure_event::unannounced_end : secure_event::damaged;
}

class handshakes final : public protocols::admission {
 public:
  handshakes(server_state& of, std::size_t most) noexcept : admission(true), of_(of), most_(most) {}

  bool is_full() noexcept override;
  void shed() override;

  void count(secure_event what) noexcept { counts_.count(what); }
  handshake_counts counts() const noexcept;

  // One handshake that is under way. Keeps the server's state alive.
  class ticket {
   public:
    explicit ticket(std::shared_ptr<handshakes> of) noexcept : of_(std::move(of)) { of_->begin(); }
    ticket(ticket&&) noexcept = default;
    ticket& operator=(ticket&& other) noexcept {
      std::swap(of_, other.of_);
      return *this;
    }
    ~ticket() { give_back(); }
    void give_back() noexcept {
      if (of_ != nullptr) std::exchange(of_, nullptr)->end();
    }

   private:
    std::shared_ptr<handshakes> of_;
  };

 private:
  // order: relaxed (both)  a count, read as a hint by the task that accepts
  void begin() noexcept { under_way_.fetch_add(1, std::memory_order_relaxed); }
  void end() noexcept {
    under_way_.fetch_sub(1, std::memory_order_relaxed);  // order: relaxed  as in begin()
    left();
  }

  server_state& of_;
  const std::size_t most_;
  std::atomic<std::size_t> under_way_{0};
  event_counts<secure_event, secure_event::count_of_events> counts_;
};

}  // namespace troupe::http
