#include "http/client/streams/stream_transport.hpp"

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "base/text/release.hpp"
#include "troupe/base/error.hpp"
#include "troupe/io/error.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::http {
namespace {

// How long to wait for the server's end after both ends have announced a close.
constexpr std::chrono::seconds end_patience{1};

}  // namespace

// Throws if the stream has failed. Call it under the mutex of the connection.
void stream_transport::check(const char* operation, int number) const {
  const asked_stream& on = over_->stream();
  if (on.failed != stream_failure::none)
    throw io_error(literal::of_table(operation), over_->where() + " (" + on.why + ")", number);
}

// Takes the bytes that have arrived, if the caller has read the earlier ones.
bool stream_transport::take_some() {
  if (at_ < piece_.size()) return true;
  asked_stream& on = over_->stream();
  if (on.unread.empty()) return false;
  over_->on().take_body(on, piece_);
  at_ = 0;
  return true;
}

task<std::size_t> stream_transport::receive(std::span<char> room,
                                            std::chrono::nanoseconds at_most) {
  asked_stream& on = over_->stream();
  const std::chrono::nanoseconds begun = now();
  for (;;) {
    bool is_kept = false;
    {
      const std::lock_guard lock(over_->on().mutex());
      over_->on().end_if_asked(on);
      if (take_some()) {
        const std::size_t bytes = std::min(room.size(), piece_.size() - at_);
        std::copy_n(piece_.begin() + static_cast<std::ptrdiff_t>(at_), bytes, room.begin());
        at_ += bytes;
        co_return bytes;
      }
      is_kept = on.failed == stream_failure::kept;
      if (!is_kept) check("receive", ECONNRESET);
      if (!is_kept && on.stage.is_over()) co_return 0;
      if (!is_kept) on.news.reset();
    }
    if (is_kept) {
      kept_.end();
      kept_.check();
    }
    co_await on.news.wait().timeout(at_most - (now() - begun));
  }
}

void stream_transport::end_freed() noexcept {
  const std::lock_guard lock(over_->on().mutex());
  base::release(piece_);
  at_ = 0;
  over_->on().end_kept(over_->stream());
}

// Completes when the session has taken all bytes, which it does when the server has given a window
// for them. If it was the turn of a call that is given up, its bytes are still sent.
task<> stream_transport::send_owned(std::string bytes) {
  const send_order::turn mine(order_);
  if (!mine.has_come()) co_await mine.comes();
  asked_stream& on = over_->stream();
  const std::size_t size = bytes.size();
  bool is_given = false;
  for (std::uint64_t begun = 0;;) {
    std::uint64_t taken = 0;
    {
      const std::lock_guard lock(over_->on().mutex());
      // The stream may have ended since; a peer that has all of a close may end it at once.
      if (is_given && on.taken == begun + size) co_return;
      check("send", EPIPE);
      if (on.stage.is_closed() || on.is_last)
        throw io_error("send", over_->where() + ", of which the server wants no more", EPIPE);
      if (on.unsent.empty()) {
        is_given = true;
        begun = on.taken;
        on.owned = std::move(bytes);
        over_->on().send(on, on.owned, false);
      }
      taken = on.taken;
      on.sent.reset();
    }
    try {
      co_await on.sent.wait().timeout(write_time_);
    } catch (const timed_out&) {
      const std::lock_guard lock(over_->on().mutex());
      if (on.taken == taken) throw;
    }
  }
}

task<std::uint64_t> stream_transport::send_file(const file&, std::uint64_t, std::uint64_t) {
  throw usage_error("troupe: http::websocket: files are sent by servers only");
}

// Without it the stream would end by a reset, of which a server allows a few only.
task<> stream_transport::end_with_peer() {
  asked_stream& on = over_->stream();
  const std::chrono::nanoseconds begun = now();
  for (;;) {
    {
      const std::lock_guard lock(over_->on().mutex());
      if (on.stage.is_closed()) co_return;
      if (!on.is_last) over_->on().send(on, on.unsent, true);
      on.news.reset();
    }
    try {
      co_await on.news.wait().timeout(end_patience - (now() - begun));
    } catch (const timed_out&) {
      co_return;
    }
  }
}

}  // namespace troupe::http
