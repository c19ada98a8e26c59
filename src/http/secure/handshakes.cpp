#include "http/secure/handshakes.hpp"

#include <algorithm>
#include <optional>

namespace troupe::http {

secure_event handshake_event_of(tls_failure why) noexcept {
  switch (why) {
    case tls_failure::certificate:
      return secure_event::bad_certificate;
    case tls_failure::refused_by_peer:
      return secure_event::refused_by_peer;
    case tls_failure::protocol:
      return secure_event::bad_protocol;
    case tls_failure::truncated:
      return secure_event::truncated;
    case tls_failure::plain_http:
      return secure_event::plain_http;
  }
  return secure_event::bad_protocol;
}

namespace {

// One client's share of the handshakes is this part, and at least so many.
constexpr std::size_t clients_sharing = 8, share_least = 16;

}  // namespace

handshakes::handshakes(whole_server& server, std::size_t most) noexcept
    : admission(true),
      server_(server),
      most_(most),
      share_(std::min(most, std::max(most / clients_sharing, share_least))) {}

handshakes::line* handshakes::join(const base::ledger::peer& client) {
  if (!client.has_share) return nullptr;
  std::lock_guard lock(mutex_);
  const auto found = lines_.try_emplace(*client.name, share_).first;
  found->second.name = &found->first;
  ++found->second.uses;
  return &found->second;
}

void handshakes::leave(line& entry) noexcept {
  std::lock_guard lock(mutex_);
  if (--entry.uses == 0) lines_.erase(lines_.find(*entry.name));
}

handshakes::ticket::ticket(std::shared_ptr<handshakes> owner, const base::ledger::peer& client)
    : handshakes_(std::move(owner)), line_(handshakes_->join(client)) {}

void handshakes::ticket::note_begun() noexcept {
  is_under_way_ = true;
  handshakes_->begin();
}

bool handshakes::ticket::try_begin() {
  if (line_ != nullptr) {
    std::optional<semaphore::permit> place = line_->places.try_acquire();
    if (!place) return false;
    place_ = std::move(*place);
  }
  note_begun();
  return true;
}

task<bool> handshakes::ticket::begin(std::stop_token stop) {
  try {
    semaphore::permit place = co_await line_->places.acquire().stop(std::move(stop));
    place_ = std::move(place);
  } catch (const cancelled&) {
    co_return false;
  }
  note_begun();
  co_return true;
}

void handshakes::ticket::give_back() noexcept {
  if (handshakes_ == nullptr) return;
  place_.release();
  if (line_ != nullptr) handshakes_->leave(*line_);
  const std::shared_ptr<handshakes> left(std::move(handshakes_));
  if (is_under_way_) left->end();
}

bool handshakes::is_full() noexcept {
  // order: relaxed  a hint: the task that accepts checks again
  return under_way_.load(std::memory_order_relaxed) >= most_ || server_.is_full();
}

void handshakes::shed() {
  if (server_.is_full()) {
    server_.shed();
  } else {
    server_.shed_handshakes();
  }
}

handshake_counts handshakes::counts() const noexcept {
  handshake_counts sum;
  // order: relaxed  a statistic
  sum.under_way = under_way_.load(std::memory_order_relaxed);
  sum.done = counts_.of(secure_event::done);
  sum.resumed = counts_.of(secure_event::resumed);
  sum.plain_http = counts_.of(secure_event::plain_http);
  sum.bad_certificate = counts_.of(secure_event::bad_certificate);
  sum.refused_by_peer = counts_.of(secure_event::refused_by_peer);
  sum.bad_protocol = counts_.of(secure_event::bad_protocol);
  sum.truncated = counts_.of(secure_event::truncated);
  sum.timed_out = counts_.of(secure_event::timed_out);
  sum.ended_by_server = counts_.of(secure_event::ended_by_server);
  sum.lost = counts_.of(secure_event::lost);
  sum.unannounced_ends = counts_.of(secure_event::unannounced_end);
  sum.damaged = counts_.of(secure_event::damaged);
  return sum;
}

}  // namespace troupe::http
