#include "nats/client/client_state.hpp"

#include <algorithm>

#include "base/invariant.hpp"
#include "nats/protocol/subject.hpp"
#include "troupe/nats/error.hpp"

namespace troupe::nats {
namespace {

// Large enough that the server's work for a message does not count. The reader takes memory for a
// message of this size at once (parser::begin_message).
constexpr std::size_t joined_bytes_max = 16 * 1024 - 64;

std::size_t bytes_of(const headers* head, std::string_view payload) noexcept {
  return payload.size() + (head != nullptr && head->size() > 0 ? head->block_bytes() : 0);
}

}  // namespace

void client_state::endings::resolve() {
  if (writer) std::exchange(writer, std::nullopt)->set_value();
  for (auto& [asker, how] : std::exchange(all, {})) asker.set_value(std::move(how));
}

void client_state::tell(incident event, std::string_view text) const {
  if (chosen.on_incident) chosen.on_incident(event, text);
}

void client_state::check_open() const {
  if (closed_ && !closed_->good) throw error(closed_->kind, closed_->text);
  if (closed_ || ends_.stop_requested())
    throw error(failure::closed, "troupe: nats: the connection was closed");
}

outcome client_state::misfit(std::string_view subject, const headers* head,
                             std::string_view payload) const {
  const server_info& about = talk_.about();
  const std::size_t bytes = bytes_of(head, payload);
  if (bytes > about.max_payload)
    return outcome::failed(failure::too_large,
                           "troupe: nats: a message of " + std::to_string(bytes) + " bytes to " +
                               std::string(subject) + " is more than the server takes (" +
                               std::to_string(about.max_payload) + ")");
  if (head != nullptr && head->size() > 0 && !about.headers)
    return outcome::failed(
        failure::refused,
        "troupe: nats: the server accepts no headers; send the message without them");
  return {};
}

bool client_state::must_wait() const noexcept {
  return connections_ == 0 || !waiting_.empty() || talk_.waiting() >= chosen.waiting_bytes_max;
}

void client_state::wake_writer(endings& later) noexcept {
  if (writer_ && on_ != nullptr) later.writer = std::exchange(writer_, std::nullopt);
}

bool client_state::try_publish(std::string_view subject, std::string_view reply,
                               const headers* head, std::string_view payload) {
  endings later;
  {
    std::lock_guard held(mutex_);
    check_open();
    if (must_wait()) return false;
    misfit(subject, head, payload).check();
    TROUPE_INVARIANT(waiting_.empty(), "C2");
    talk_.publish(subject, reply, head, payload);
    ++published_;
    wake_writer(later);
  }
  later.resolve();
  return true;
}

bool client_state::try_publish_joined(std::string_view subject, std::string_view lead,
                                      std::initializer_list<std::string_view> pieces) {
  std::size_t bytes = 0;
  for (const std::string_view piece : pieces) bytes += piece.size();
  endings later;
  {
    std::lock_guard held(mutex_);
    check_open();
    if (must_wait()) return false;
    TROUPE_INVARIANT(waiting_.empty(), "C2");
    const std::size_t bytes_max = std::min(joined_bytes_max, talk_.about().max_payload);
    if (lead.size() + bytes > bytes_max) return false;
    if (!talk_.would_join(subject, bytes, bytes_max)) check_to_publish(subject);
    talk_.publish_joined(subject, lead, pieces, bytes_max);
    ++published_;
    wake_writer(later);
  }
  later.resolve();
  return true;
}

client_state::call client_state::start_publish(message&& outgoing) {
  return start_call(std::move(outgoing), false);
}
client_state::call client_state::start_request(message&& outgoing) {
  return start_call(std::move(outgoing), true);
}

// There may be room again since the caller has seen none, and the writer may wait for bytes: then
// no other call would let the message in.
client_state::call client_state::start_call(message&& outgoing, bool asks) {
  promise<answer> asker;
  call begun{0, asker.get_future()};
  endings later;
  {
    std::lock_guard held(mutex_);
    check_open();
    begun.number = ++last_call_;
    const bool waits = must_wait();
    waiting_.emplace(begun.number, waiting_call{std::move(outgoing), std::move(asker), asks});
    if (!waits) let_in(later);
    wake_writer(later);
  }
  later.resolve();
  return begun;
}

client_state::call client_state::start_flush() {
  promise<answer> asker;
  call begun{0, asker.get_future()};
  endings later;
  {
    std::lock_guard held(mutex_);
    check_open();
    begun.number = ++last_call_;
    sent_.emplace(begun.number, std::move(asker));
    talk_.ping(begun.number);
    wake_writer(later);
  }
  later.resolve();
  return begun;
}

// The waiting calls, as far as there is room.
void client_state::let_in(endings& later) {
  while (!waiting_.empty() && talk_.waiting() < chosen.waiting_bytes_max) {
    auto next = waiting_.extract(waiting_.begin());
    const message& outgoing = next.mapped().outgoing;
    promise<answer>& to = next.mapped().to;
    outcome wrong = misfit(outgoing.subject, &outgoing.head, outgoing.payload);
    published_ += wrong.good;
    if (!wrong.good || !next.mapped().asks) {
      if (wrong.good)
        talk_.publish(outgoing.subject, outgoing.reply, &outgoing.head, outgoing.payload);
      later.add(std::move(to), std::move(wrong));
      continue;
    }
    talk_.request(next.key(), outgoing.subject, &outgoing.head, outgoing.payload);
    [[maybe_unused]] const bool is_new = sent_.emplace(next.key(), std::move(to)).second;
    TROUPE_INVARIANT(is_new && !drains_.contains(next.key()), "C1");
  }
}

void client_state::take_sent(std::uint64_t number, outcome how, endings& later) {
  auto found = sent_.extract(number);
  if (found) later.add(std::move(found.mapped()), std::move(how));
}

void client_state::forget(std::uint64_t call) noexcept {
  // They end with the mutex free, and without a caller.
  std::optional<waiting_call> waited;
  std::optional<promise<answer>> other;
  std::lock_guard held(mutex_);
  talk_.cancel(call);
  if (auto extracted = waiting_.extract(call)) waited.emplace(std::move(extracted.mapped()));
  if (auto extracted = sent_.extract(call)) other.emplace(std::move(extracted.mapped()));
  if (auto extracted = drains_.extract(call)) {
    TROUPE_INVARIANT(!other, "C1");
    other.emplace(std::move(extracted.mapped()));
  }
  TROUPE_INVARIANT(!waited || !other, "C1");
  TROUPE_INVARIANT(!closed_ || (!waited && !other), "C3");
}

subscription_ptr client_state::subscribe(std::string_view subject, const subscribe_options& given) {
  const auto subscription =
      std::make_shared<subscription_state>(subject, given, unread_, weak_from_this());
  endings later;
  {
    std::lock_guard held(mutex_);
    check_open();
    if (draining_) throw error(failure::closed, "troupe: nats: the connection is being drained");
    subscription->sid = talk_.subscribe(subject, given.queue, given.ends_after);
    subscriptions_.emplace(subscription->sid, subscription);
    ++readers_;
    wake_writer(later);
  }
  later.resolve();
  return subscription;
}

void client_state::end_under(subscription_state& subscription, const outcome& how) {
  if (std::exchange(subscription.at_end, true)) return;
  subscription.ended = how;
  subscriptions_.erase(subscription.sid);
}

void client_state::end_subscription(const subscription_ptr& subscription, const outcome& how) {
  endings later;
  {
    std::lock_guard held(mutex_);
    talk_.unsubscribe(subscription->sid);
    end_under(*subscription, how);
    wake_writer(later);
  }
  subscription->arrived.close();
  later.resolve();
}

bool client_state::has_ended(const subscription_state& subscription) {
  std::lock_guard held(mutex_);
  return subscription.at_end;
}

void client_state::unsubscribe(const subscription_ptr& subscription) noexcept {
  try {
    end_subscription(subscription, {});
  } catch (...) {
    // Without memory for the command the server continues to send, and its messages are dropped.
    subscription->arrived.close();
  }
}

void client_state::stop_delivery(const subscription_ptr& subscription) {
  endings later;
  {
    std::lock_guard held(mutex_);
    talk_.stop_delivery(subscription->sid);
    wake_writer(later);
  }
  later.resolve();
}

void client_state::leave(const subscription_ptr& subscription) noexcept {
  endings later;
  {
    std::lock_guard held(mutex_);
    if (std::exchange(subscription->gone, true) || --readers_ > 0) return;
    for (auto& [number, to] : std::exchange(drains_, {})) later.add(std::move(to), {});
  }
  later.resolve();
}

void client_state::begin_drain() {
  endings later;
  {
    std::lock_guard held(mutex_);
    check_open();
    draining_ = true;
    for (const auto& [sid, subscription] : subscriptions_) talk_.stop_delivery(sid);
    wake_writer(later);
  }
  later.resolve();
}

void client_state::end_subscriptions() {
  std::vector<subscription_ptr> all;
  {
    std::lock_guard held(mutex_);
    for (const auto& [sid, subscription] : subscriptions_) all.push_back(subscription);
  }
  for (const subscription_ptr& subscription : all) end_subscription(subscription, {});
}

client_state::call client_state::start_wait_for_readers() {
  promise<answer> asker;
  call begun{0, asker.get_future()};
  endings later;
  {
    std::lock_guard held(mutex_);
    check_open();
    begun.number = ++last_call_;
    if (readers_ > 0)
      drains_.emplace(begun.number, std::move(asker));
    else
      later.add(std::move(asker), {});
  }
  later.resolve();
  return begun;
}

// A server of before 2.2 takes no headers.
bool client_state::sends_traces() {
  if (!chosen.send_trace) return false;
  std::lock_guard held(mutex_);
  return connections_ == 0 || talk_.about().headers;
}

void client_state::close() noexcept {
  wire_ptr on;
  {
    std::lock_guard held(mutex_);
    on = on_;
  }
  ends_.request_stop();
  if (on != nullptr) on->ends.request_stop();
}

// The writer ends the connection when nothing waits any more.
void client_state::finish() noexcept {
  endings later;
  bool at_once = false;
  {
    std::lock_guard held(mutex_);
    finishing_ = true;
    at_once = on_ == nullptr;
    wake_writer(later);
  }
  if (at_once) ends_.request_stop();
  if (later.writer) later.resolve();
}

connection::status client_state::now() {
  std::lock_guard held(mutex_);
  connection::status status;
  status.connected = talk_.is_connected();
  status.server = server_;
  status.connections = connections_;
  status.waiting_bytes = talk_.waiting();
  status.subscriptions = subscriptions_.size();
  status.requests = sent_.size();
  status.payload_bytes_max = connections_ == 0 ? 0 : talk_.about().max_payload;
  return status;
}

}  // namespace troupe::nats
