// gone_watch: requests a stop when the client of a request goes away while the request's handler
// works.
//
// The kernel reports the end of the connection even if bytes came before it that are not read yet:
// the rest of the body, the next request, the closing alert of TLS. A connection has no watch until
// a handler calls request::client_gone(): other requests cost nothing.
// Rejected: a read ahead, because the bytes would have to be put back in front of the next request;
// a check at regular intervals.
//
// Threads: the connection's task owns the watch; the reactor reports to it on any thread.
// Invariants
//   W1  the watch has two shares, one of the connection and one of the reactor while the watch is
//       armed. Whoever drops the last share frees the watch.
//   W2  the connection does not give its stream away while the watch is armed. It may read.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <utility>

#include "base/invariant.hpp"
#include "io/sockets/sockets.hpp"
#include "io/suspensions/arrival.hpp"
#include "troupe/io/stream.hpp"
#include "troupe/task/event.hpp"

namespace troupe::http {

class gone_watch final : public io::arrival {
 public:
  // The treatment of a client that ends only its sending half: it counts as gone; this is reported
  // and no more; or it is not even reported.
  enum class half_close : std::uint8_t { is_gone, is_reported, is_ignored };
  explicit gone_watch(half_close how)
      : arrival(&on_arrival, how != half_close::is_ignored ? POLLRDHUP : 0),
        ends_(how != half_close::is_ignored ? POLLRDHUP : 0),
        counts_half_(how == half_close::is_gone) {}

  std::stop_token token() const noexcept { return gone_.get_token(); }
  // The caller has found by other means that the client has disconnected.
  void tell() noexcept {
    if (!is_over_) gone_.request_stop();
  }
  // The request was answered: tell() does nothing any more.
  void end_telling() noexcept { is_over_ = true; }

  // Call it in a turn, once, for a stream that was used before.
  void arm(stream& watched) noexcept {
    TROUPE_INVARIANT(!armed_, "W1");
    armed_ = true;
    // order: relaxed  the connection has a share during this call
    shares_.fetch_add(1, std::memory_order_relaxed);
    if (begin(watched)) return;
    if (at != nullptr) note();
    reported_.set();
    drop();
  }
  // Call it in a turn, where the handler does not wait long enough to arm the watch: it checks
  // once.
  void check(stream& watched) { note(io::current_kernel().poll(watched.fd(), ends_)); }
  // Call it in a turn; only the first call does something. Makes the kernel buffer up to `bytes`
  // unread bytes, so that the end of the connection can arrive behind them. The kernel grows its
  // buffer when the least size of a read (SO_RCVLOWAT) is raised, and keeps the buffer when that is
  // lowered again. It then still adapts the size of the buffer by itself.
  //
  // Rejected: SO_RCVBUF, after which it no longer does.
  void make_room(stream& watched, std::size_t bytes) {
    if (std::exchange(has_room_, true)) return;
    io::kernel& calls = io::current_kernel();
    static_cast<void>(
        calls.set_option(watched.fd(), SOL_SOCKET, SO_RCVLOWAT, static_cast<int>(bytes)));
    static_cast<void>(calls.set_option(watched.fd(), SOL_SOCKET, SO_RCVLOWAT, 1));
  }
  bool is_armed() const noexcept { return armed_; }
  // Called by the connection: the watch reports no more. The reactor has let go of it when
  // reported() is set.
  void disarm() noexcept {
    if (armed_ && !reported_.is_set()) end();
  }
  const event& reported() const noexcept { return reported_; }
  // At the end of the runtime no other thread polls for completions: this one does.
  void drive_to_the_end() noexcept {
    if (!armed_) return;
    disarm();
    while (!reported_.is_set()) owner().drive();
  }

  void drop() noexcept {
    // order: acq_rel  the side that frees it sees the other's writes; pairs with the other drop
    const int before = shares_.fetch_sub(1, std::memory_order_acq_rel);
    TROUPE_INVARIANT(before == 1 || before == 2, "W1");
    if (before == 1) delete this;
  }
  struct dropped {
    void operator()(gone_watch* watch) const noexcept { watch->drop(); }
  };

 private:
  ~gone_watch() = default;
  static void on_arrival(arrival& self) noexcept {
    auto& watch = static_cast<gone_watch&>(self);
    watch.note();
    watch.reported_.set();
    watch.drop();
  }
  void note() noexcept { note(result); }
  // `found`: the events of poll(2); negative when the watch was ended.
  void note(int found) noexcept {
    if (found <= 0 || (found & POLLNVAL) != 0) return;
    if (counts_half_ || (found & (POLLERR | POLLHUP)) != 0) gone_.request_stop();
  }

  std::stop_source gone_;
  event reported_;
  std::atomic<int> shares_{1};
  const short ends_;
  const bool counts_half_;
  bool armed_ = false;
  bool has_room_ = false;
  bool is_over_ = false;
};
using gone_watch_ptr = std::unique_ptr<gone_watch, gone_watch::dropped>;

}  // namespace troupe::http
