// connection_clock: the phase of a connection of a server, and until when it may wait in that
// phase.
//
// Threads: the connection's own. Any other thread may read phase_now(), expiry_ns() and
// idle_since_ns(), as hints: the sweep that ends late connections, and the thread that makes room.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

#include "troupe/base/time_span.hpp"

namespace troupe::http {

inline constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();

class connection_clock {
 public:
  // `in_line`: waits for its turn to make a handshake. `handshake`: the TLS handshake.
  // `fresh`: idle, before its first request. `streams`: busy, and an HTTP/2 stream
  // may be late. `lingering`: it was answered, and its client may still send.
  enum class phase : std::uint8_t {
    in_line,
    handshake,
    fresh,
    idle,
    head,
    busy,
    streams,
    upgraded,
    lingering
  };

  // ---- any thread ----

  // order: relaxed  a hint: the connection may be asked to end at the moment when a request comes
  phase phase_now() const noexcept { return phase_.load(std::memory_order_relaxed); }
  // order: relaxed  a time; publishes nothing
  std::int64_t expiry_ns() const noexcept { return expiry_ns_.load(std::memory_order_relaxed); }
  std::int64_t idle_since_ns() const noexcept {
    return idle_since_ns_.load(std::memory_order_relaxed);  // order: relaxed  a time, as above
  }
  // Whether the server may end such a connection to make room for another connection: it is idle,
  // and if it is fresh, or before the end of its handshake, it has been so for at least a second.
  static bool is_idle(phase at, std::int64_t since_ns, std::int64_t now_ns) noexcept {
    constexpr std::int64_t fresh_ns = 1'000'000'000;  // for the first request to come
    const bool is_fresh = at == phase::fresh || at == phase::handshake || at == phase::in_line;
    return at == phase::idle || at == phase::lingering ||
           (is_fresh && now_ns - since_ns >= fresh_ns);
  }

  // ---- the connection's thread ----

  // begin_wait: the operation that is awaited next has at most `span` of time. end_wait: the time
  // is no longer limited.
  void begin_wait(phase now_in, std::chrono::nanoseconds span, std::int64_t now_ns) noexcept {
    enter(now_in);
    // order: relaxed  a hint for the sweep
    expiry_ns_.store(after(now_ns, span), std::memory_order_relaxed);
  }
  void end_wait() noexcept {
    expiry_ns_.store(never_ns, std::memory_order_relaxed);  // order: relaxed  a hint for the sweep
    enter(phase::busy);
  }
  // The time is limited as before.
  void enter(phase now_in) noexcept {
    phase_.store(now_in, std::memory_order_relaxed);  // order: relaxed  a hint for the sweep
  }
  // Waits in this phase, in which other connections may need its room.
  void begin_idle(phase now_in, std::chrono::nanoseconds span, std::int64_t now_ns) noexcept {
    // order: relaxed  a hint for the thread that makes room
    idle_since_ns_.store(now_ns, std::memory_order_relaxed);
    begin_wait(now_in, span, now_ns);
  }
  // A head has begun to come. It has `span` of time from the first such call until end_head().
  void wait_for_head(time_span span, std::int64_t now_ns) noexcept {
    if (head_expiry_ns_ == 0) head_expiry_ns_ = after(now_ns, span);
    begin_wait(phase::head, std::chrono::nanoseconds(head_expiry_ns_ - now_ns), now_ns);
  }
  void end_head() noexcept { head_expiry_ns_ = 0; }

 private:
  static std::int64_t after(std::int64_t now_ns, time_span span) noexcept {
    return span.after(std::chrono::nanoseconds(now_ns)).count();
  }

  std::atomic<phase> phase_{phase::busy};
  std::atomic<std::int64_t> expiry_ns_{never_ns}, idle_since_ns_{0};
  std::int64_t head_expiry_ns_ = 0;  // when the head being read is late; 0: none has begun
};

}  // namespace troupe::http
