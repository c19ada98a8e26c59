// gone_watch: requests a stop when the client of a request has gone while its handler works.
//
// The system tells it of the end of the connection, whatever has come before that and is not read
// yet: the rest of the body, the next request, the goodbye of TLS. There is none until a handler
// asks for request::client_gone(): other requests cost nothing. Rejected: a read ahead, which would
// have to be put back in front of the next request; a look from time to time. Threads: the
// connection's flow owns it; the reactor tells it on any thread. Invariants
//   W1  it is freed by who drops the last of two shares: the connection's, and the one that the
//   reactor has while it is armed. W2  the connection does not give its stream away while the watch
//   is armed. It may read.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <stop_token>
#include <utility>

#include "io/operations/arrival.hpp"
#include "io/sockets/sockets.hpp"
#include "troupe/io/stream.hpp"
#include "troupe/task/event.hpp"

namespace troupe::http {

class gone_watch final : public io::arrival {
 public:
  // `half_close`: the end of what the client sends counts, too.
  explicit gone_watch(bool half_close)
      : arrival(&on_arrival, half_close ? POLLRDHUP : 0), ends_(half_close ? POLLRDHUP : 0) {}

  std::stop_token token() const noexcept { return gone_.get_token(); }
  // It is known by other means.
  void tell() noexcept { gone_.request_stop(); }

  // In a turn; once. The stream was used before.
  void arm(stream& of) noexcept {
    armed_ = true;
    // order: relaxed  the connection has a share meanwhile
    shares_.fetch_add(1, std::memory_order_relaxed);
    if (begin(of)) return;
    if (at != nullptr) note();
    told_.set();
    drop();
  }
  // In a turn, where nobody waits long enough for it to be armed.
  void look(stream& of) { note(io::current_kernel().look(of.fd(), ends_)); }
  // In a turn. So many bytes that nobody reads may come before the end does: the system buffers
  // them. It takes the least size of a read as a word for that, and keeps the room that it made
  // when that is taken back; it goes on sizing the buffer by itself, as it does not behind
  // SO_RCVBUF.
  void make_room(stream& of, std::size_t bytes) {
    io::kernel& calls = io::current_kernel();
    static_cast<void>(calls.set_option(of.fd(), SOL_SOCKET, SO_RCVLOWAT, static_cast<int>(bytes)));
    static_cast<void>(calls.set_option(of.fd(), SOL_SOCKET, SO_RCVLOWAT, 1));
  }
  bool is_armed() const noexcept { return armed_; }
  // Of the connection: nothing more is told. It is over when the event is set.
  void disarm() noexcept {
    if (armed_ && !told_.is_set()) end();
  }
  const event& told() const noexcept { return told_; }
  // At the runtime's end nobody else looks for completions.
  void drive_to_the_end() noexcept {
    if (!armed_) return;
    disarm();
    while (!told_.is_set()) home().drive();
  }

  void drop() noexcept {
    // order: acq_rel  who frees it sees what the other did; pairs with the other drop
    if (shares_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  struct dropped {
    void operator()(gone_watch* one) const noexcept { one->drop(); }
  };

 private:
  ~gone_watch() = default;
  static void on_arrival(arrival& self) noexcept {
    auto& one = static_cast<gone_watch&>(self);
    one.note();
    one.told_.set();
    one.drop();
  }
  void note() noexcept { note(result); }
  // What poll(2) says, or a negative result: the watch was ended.
  void note(int found) noexcept {
    if (found > 0 && (found & POLLNVAL) == 0) gone_.request_stop();
  }

  std::stop_source gone_;
  event told_;
  std::atomic<int> shares_{1};
  const short ends_;
  bool armed_ = false;
};
using gone_watch_ptr = std::unique_ptr<gone_watch, gone_watch::dropped>;

}  // namespace troupe::http
