// requested_end: the end of a connection of a server, or of the operation that it awaits, as others
// request it.
//
// Threads: the connection's own. Any thread that holds the server's mutex may call the functions
// of the first part.
// Invariants
//   Q1  A request that ends streams only, or parks the connection, replaces none that ends it.
#pragma once

#include <atomic>
#include <cstdint>
#include <stop_token>

#include "base/invariant.hpp"

namespace troupe::http {

// Why a connection is asked to end. `draining` ends connections that are idle or talk another
// protocol; the others finish their request first. With HTTP/2 `over_budget` and `late_stream` end
// streams only.
enum class connection_ending : std::uint8_t {
  none,
  parking,
  late,
  late_stream,
  shed,
  over_budget,
  aborted,
  draining
};
inline constexpr auto connection_endings = static_cast<connection_ending>(
    static_cast<std::uint8_t>(connection_ending::draining) + 1);  // how many there are

class requested_end {
 public:
  using ending = connection_ending;

  // ---- with the server's mutex held ----

  // The operation that the connection awaits ends as cancelled. Returns whether this reason is a
  // new one.
  bool request(ending why, bool has_streams) noexcept {
    // order: relaxed  the mutex orders it
    const ending before = why_.load(std::memory_order_relaxed);
    const bool parks = why == ending::parking;
    if (parks && before != ending::none) return false;
    const bool is_for_streams =
        why == ending::late_stream || (why == ending::over_budget && has_streams);
    const bool is_new = !parks && before != why;
    // The reason that ends the connection is not replaced by one that ends streams of it.
    if (is_for_streams && !may_continue(before)) return is_new;
    // order: release  read by the task that finds its operation cancelled; pairs with why()/acquire
    why_.store(why, std::memory_order_release);
    idle_.request_stop();
    if (why != ending::draining && !parks && !is_for_streams) busy_.request_stop();
    return is_new;
  }
  // The connection was asked to end streams only, and may wait again.
  void renew() {
    // order: relaxed  the mutex orders both
    const ending before = why_.load(std::memory_order_relaxed);
    if (before == ending::over_budget || before == ending::late_stream) withdraw();
  }
  // The operation that was asked to end has ended, and the connection sends a last answer. Call it
  // on the connection's own thread.
  void revive() {
    // order: relaxed  the mutex orders both
    const ending before = why_.load(std::memory_order_relaxed);
    if (before == ending::aborted) return;
    TROUPE_INVARIANT(!may_continue(before) && before != ending::late_stream, "Q1");
    busy_ = std::stop_source();
  }
  // After request(parking): the connection continues and does not park. Returns false when it was
  // asked to end in the meantime.
  bool stay() {
    if (!may_park()) return false;
    withdraw();
    return true;
  }
  bool may_park() const noexcept {
    // order: relaxed  the mutex orders it
    return may_continue(why_.load(std::memory_order_relaxed));
  }
  // order: relaxed  the mutex orders it
  bool is_requested() const noexcept {
    return why_.load(std::memory_order_relaxed) != ending::none;
  }

  // ---- the connection's thread ----

  // order: acquire  pairs with request()/release
  ending why() const noexcept { return why_.load(std::memory_order_acquire); }
  // True when nothing more is to be sent, or only the bytes that a waiting operation lets through.
  bool ends_writing() const noexcept {
    // order: relaxed  an end that is requested at this moment takes effect at the next wait
    const ending now_why = why_.load(std::memory_order_relaxed);
    return !may_continue(now_why) && now_why != ending::draining;
  }
  // Ends a wait for the next request, unless it is patient.
  std::stop_token idle_token() const noexcept { return idle_.get_token(); }
  // Ends an operation that is under way.
  std::stop_token busy_token() const noexcept { return busy_.get_token(); }
  // Ends each operation of the connection, without a reason.
  void stop() noexcept {
    idle_.request_stop();
    busy_.request_stop();
  }

 private:
  static bool may_continue(ending why) noexcept {
    return why == ending::none || why == ending::parking;
  }
  void withdraw() {
    // order: relaxed  written on the connection's own thread, and the mutex orders it
    why_.store(ending::none, std::memory_order_relaxed);
    idle_ = std::stop_source();
  }

  std::atomic<ending> why_{ending::none};
  std::stop_source idle_, busy_;
};

}  // namespace troupe::http
