#include "troupe/io/operations/accept.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "io/sockets/exhaustion.hpp"
#include "troupe/io/error.hpp"
#include "troupe/io/tcp.hpp"
#include "troupe/io/unix_socket.hpp"
#include "troupe/task/current_actor.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::io {

// If the coroutine was destroyed before it took the result, nothing else closes the connection.
accept_base::~accept_base() {
  if (unclaimed_ != nullptr) unclaimed_->close_result();
}

descriptor& accept_base::prepare(operation_suspension& wait) noexcept {
  wait.weak = weak_;
  wait.result = -ECANCELED;  // the result if the operation never begins
  unclaimed_ = &wait;
  return *listener_;
}

descriptor accept_base::take(operation_suspension& wait) {
  wait.check("accept");
  descriptor accepted(wait.result);
  unclaimed_ = nullptr;
  accepted.bind(*tasks::current_io());
  return accepted;
}

namespace {

// No event reports that a descriptor was closed: it tries again; a try costs a few microseconds,
// far less than a percent of a core.
constexpr std::chrono::nanoseconds pause_min = std::chrono::milliseconds(1),
                                   pause_max = std::chrono::milliseconds(25);

template <class Stream, class Listener>
task<Stream> accept_patiently(Listener& from, bool weak, std::stop_token end) {
  for (auto pause = pause_min;; pause = std::min(pause * 2, pause_max)) {
    try {
      Stream accepted = co_await from.accept().stop(end);
      co_return accepted;
    } catch (const io_error& e) {
      if (!is_exhaustion(e)) throw;
    }
    const tasks::sleep nap = weak ? sleep_for(pause).weak() : sleep_for(pause);
    co_await nap;
  }
}

}  // namespace

}  // namespace troupe::io

namespace troupe {

// These are not in the headers: GCC emits coroutines even if no code calls them, and a program
// without I/O need not link this library.
task<tcp_stream> tcp_listener::accept_when_able(std::stop_token end) {
  return io::accept_patiently<tcp_stream>(*this, weak_, std::move(end));
}
task<unix_stream> unix_listener::accept_when_able(std::stop_token end) {
  return io::accept_patiently<unix_stream>(*this, weak_, std::move(end));
}

}  // namespace troupe
