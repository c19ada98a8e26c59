#include "http/client/wires/client_wire.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "io/sockets/sockets.hpp"
#include "io/suspensions/at_once.hpp"
#include "tls/wire_of.hpp"

namespace troupe::http {

void client_wire::consume(std::size_t bytes) noexcept {
  begin_ += bytes;
  if (begin_ == end_) begin_ = end_ = 0;
}

stream& client_wire::below() noexcept {
  if (secure_.is_open()) return tls::wire_of::in(secure_);
  return plain_;
}

void client_wire::make_room() {
  if (end_ < buffer_.size()) return;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  } else {
    // Here a head is longer than the buffer. The parser refuses one that is too long.
    buffer_.resize(std::max(buffer_bytes, buffer_.size() * 2));
  }
}

task<std::size_t> client_wire::receive(const tasks::limits& within) {
  make_room();
  const std::span<char> room(buffer_.data() + end_, buffer_.size() - end_);
  std::size_t bytes = 0;
  if (secure_.is_open()) {
    bytes = co_await secure_.read(room).timeout(within.left()).stop(within.stop());
  } else {
    bytes = co_await plain_.read(room).timeout(within.left()).stop(within.stop());
  }
  end_ += bytes;
  co_return bytes;
}

task<> client_wire::send(std::string_view bytes, const tasks::limits& within,
                         std::chrono::nanoseconds piece_time) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, piece_bytes);
    const tasks::limits now = within.within(piece_time);
    if (secure_.is_open()) {
      co_await secure_.write_all(piece).timeout(now.left()).stop(now.stop());
    } else {
      co_await plain_.write_all(piece).timeout(now.left()).stop(now.stop());
    }
    bytes.remove_prefix(piece.size());
  }
}

task<std::size_t> client_wire::send_some(std::string_view bytes, std::chrono::nanoseconds at_most) {
  if (secure_.is_open()) co_return co_await secure_.write(bytes).timeout(at_most);
  co_return co_await plain_.write(bytes).timeout(at_most);
}

task<std::size_t> client_wire::receive_some(std::span<char> to, std::chrono::nanoseconds at_most,
                                            std::stop_token stop) {
  if (secure_.is_open()) co_return co_await secure_.read(to).timeout(at_most).stop(stop);
  co_return co_await plain_.read(to).timeout(at_most).stop(stop);
}

bool client_wire::has_news() const {
  return secure_.has_input() || io::current_kernel().poll(fd(), POLLIN | POLLRDHUP) != 0;
}

void client_wire::say_goodbye() noexcept {
  if (streams == nullptr || !streams->takes_requests()) {
    if (secure_.is_open()) tls::wire_of::say_last(secure_, {});
    return;
  }
  try {
    output out;
    streams->terminate(h2::code::no_error);
    streams->send(out, piece_bytes);
    if (secure_.is_open()) {
      tls::wire_of::say_last(secure_, out.view());
    } else {
      io::at_once::write_last(plain_, out.view());
    }
  } catch (const std::bad_alloc&) {  // the server sees the end of the stream
  }
}

wire_ptr wire_pool::take_latest(const std::string& origin, std::chrono::nanoseconds now,
                                ended_list& ended) {
  std::lock_guard lock(mutex_);
  const auto found = all_.find(origin);
  if (found == all_.end()) return nullptr;
  idle_list& list = found->second;
  wire_ptr latest;
  while (latest == nullptr && !list.empty()) {
    wire_ptr& last = list.back();
    (now - last->idle_since < idle_time_ ? latest : ended.emplace_back()) = std::move(last);
    list.pop_back();
    --count_;
  }
  if (list.empty()) all_.erase(found);
  return latest;
}

wire_ptr wire_pool::take(const std::string& origin) {
  const std::chrono::nanoseconds at = now();
  for (;;) {
    ended_list ended;
    wire_ptr wire = take_latest(origin, at, ended);
    // A kept connection that has bytes for which no request asked, or has ended, must not be used.
    // Bytes that arrived by HTTP/2 may be a PING, or its end: its next user looks.
    if (wire == nullptr || wire->streams != nullptr || !wire->has_news()) return wire;
  }
}

void wire_pool::trim(const std::string& origin, std::size_t most) {
  ended_list ended;
  std::lock_guard lock(mutex_);
  const auto found = all_.find(origin);
  if (found == all_.end()) return;
  idle_list& list = found->second;
  while (list.size() > most) {
    ended.push_back(std::move(list.front()));
    list.erase(list.begin());
    --count_;
  }
  if (list.empty()) all_.erase(found);
}

void wire_pool::put(wire_ptr wire) {
  wire->idle_since = now();
  const std::string origin = std::move(wire->origin);
  std::optional<connection_slot> slot;
  if (wire->slot) slot.emplace(*std::exchange(wire->slot, std::nullopt));
  ended_list ended;
  std::lock_guard lock(mutex_);
  // First close connections that are too old, of all origins; then the oldest one, if there are too
  // many.
  const auto old = [&](const wire_ptr& other) {
    return wire->idle_since - other->idle_since >= idle_time_;
  };
  for (auto at = all_.begin(); at != all_.end();) {
    idle_list& list = at->second;
    const auto kept = std::find_if_not(list.begin(), list.end(), old);
    count_ -= static_cast<std::size_t>(kept - list.begin());
    std::move(list.begin(), kept, std::back_inserter(ended));
    list.erase(list.begin(), kept);
    at = list.empty() ? all_.erase(at) : std::next(at);
  }
  if (per_origin_ == 0 || most_ == 0) {
    ended.push_back(std::move(wire));
    return;
  }
  if (count_ >= most_) {
    const auto oldest =
        std::min_element(all_.begin(), all_.end(), [](const auto& a, const auto& b) {
          return a.second.front()->idle_since < b.second.front()->idle_since;
        });
    ended.push_back(std::move(oldest->second.front()));
    oldest->second.erase(oldest->second.begin());
    if (oldest->second.empty()) all_.erase(oldest);
    --count_;
  }
  idle_list& list = all_[origin];
  if (list.size() >= per_origin_) {
    ended.push_back(std::move(list.front()));
    list.erase(list.begin());
    --count_;
  }
  list.push_back(std::move(wire));
  ++count_;
}

std::size_t wire_pool::size() {
  std::lock_guard lock(mutex_);
  return count_;
}

void wire_pool::clear() {
  ended_list ended;
  std::lock_guard lock(mutex_);
  for (auto& [origin, list] : all_) std::move(list.begin(), list.end(), std::back_inserter(ended));
  all_.clear();
  count_ = 0;
}

}  // namespace troupe::http
