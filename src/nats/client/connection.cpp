#include "troupe/nats/connection.hpp"

#include "base/text/zero_byte.hpp"
#include "nats/client/client_state.hpp"
#include "nats/protocol/subject.hpp"
#include "nats/stored.hpp"
#include "troupe/base/error.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/limits.hpp"
#include "troupe/task/trace_context.hpp"

namespace troupe::nats {
namespace {

using handle_ptr = std::shared_ptr<const client_handle>;

options checked(const options& chosen) {
  const auto positive = [](const auto& value, const char* name) {
    if (value <= std::remove_cvref_t<decltype(value)>())
      throw option_error("troupe: nats: " + std::string(name) + " must be more than 0");
  };
  positive(chosen.connect_timeout, "connect_timeout");
  positive(chosen.reconnect_delay, "reconnect_delay");
  positive(chosen.reconnect_delay_max, "reconnect_delay_max");
  positive(chosen.write_timeout, "write_timeout");
  positive(chosen.request_timeout, "request_timeout");
  positive(chosen.ping_interval, "ping_interval");
  positive(chosen.pings_max, "pings_max");
  positive(chosen.waiting_bytes_max, "waiting_bytes_max");
  positive(chosen.message_bytes_max, "message_bytes_max");
  positive(chosen.header_bytes_max, "header_bytes_max");
  if (chosen.unread_bytes_max < unread_bytes_least)
    throw option_error("troupe: nats: unread_bytes_max must be at least 64 KiB");
  base::refuse_zero_byte(chosen.credentials_file, "nats", "credentials_file");
  base::refuse_zero_byte(chosen.nkey_file, "nats", "nkey_file");
  check_to_publish(chosen.inbox);
  return chosen;
}

// Counts how a request ends.
class request_watch {
 public:
  explicit request_watch(client_state& by) noexcept : client_(by), began_(troupe::now()) {}
  request_watch(const request_watch&) = delete;
  request_watch& operator=(const request_watch&) = delete;
  ~request_watch() {
    if (!is_answered_) client_.note_failed_request();
  }
  void end() noexcept {
    is_answered_ = true;
    client_.note_answer(troupe::now() - began_);
  }

 private:
  client_state& client_;
  const std::chrono::nanoseconds began_;
  bool is_answered_ = false;
};

// A call that its caller may give up.
class open_call {
 public:
  open_call(client_state& by, std::uint64_t number) noexcept : client_(by), number_(number) {}
  open_call(const open_call&) = delete;
  open_call& operator=(const open_call&) = delete;
  ~open_call() {
    if (number_ != 0) client_.forget(number_);
  }
  void end() noexcept { number_ = 0; }

 private:
  client_state& client_;
  std::uint64_t number_;
};

task<> nothing() { co_return; }

task<> await(handle_ptr by, client_state::call begun) {
  open_call open(*by->client, begun.number);
  const answer got = co_await std::move(begun.end);
  open.end();
  got.end.check();
}

task<> publish_later(handle_ptr by, message outgoing) {
  client_state::call begun = by->client->start_publish(std::move(outgoing));
  task<> waits = await(by, std::move(begun));
  co_await std::move(waits);
}

void add_trace(client_state& by, headers& head) {
  const auto trace = this_call::trace();
  if (!trace || head.get("traceparent") || !by.sends_traces()) return;
  head.set("traceparent", trace->traceparent());
  if (!trace->tracestate().empty()) head.set("tracestate", trace->tracestate());
}

task<message> ask(handle_ptr by, message outgoing) {
  constexpr int no_responders = 503;
  client_state& connected = *by->client;
  add_trace(connected, outgoing.head);
  const std::string subject = outgoing.subject;
  request_watch watched(connected);
  client_state::call begun = connected.start_request(std::move(outgoing));
  open_call open(connected, begun.number);
  answer got = co_await std::move(begun.end).timeout(connected.chosen.request_timeout);
  open.end();
  got.end.check();
  if (got.got.head.status() == no_responders && got.got.payload.empty())
    throw error(failure::no_responders,
                "troupe: nats: no subscriber answers requests to " + subject);
  watched.end();
  co_return std::move(got.got);
}

task<stored> store_message(handle_ptr by, message outgoing) {
  task<message> asks = ask(std::move(by), std::move(outgoing));
  const message answer = co_await std::move(asks);
  co_return read_stored(answer);
}

task<> flush_now(handle_ptr by) {
  client_state& connected = *by->client;
  client_state::call begun = connected.start_flush();
  open_call open(connected, begun.number);
  const answer got = co_await std::move(begun.end);
  open.end();
  got.end.check();
}

// Answers that are lost with a connection do not come any more.
task<> flush_or_lose(handle_ptr by) {
  try {
    task<> flushes = flush_now(std::move(by));
    co_await std::move(flushes);
  } catch (const error& failed) {
    if (failed.kind() != failure::lost) throw;
  }
}

task<> drain_all(handle_ptr by) {
  client_state& connected = *by->client;
  connected.begin_drain();
  task<> stops = flush_or_lose(by);
  co_await std::move(stops);
  connected.end_subscriptions();
  task<> reads = await(by, connected.start_wait_for_readers());
  co_await std::move(reads);
  task<> sends = flush_or_lose(by);
  co_await std::move(sends);
  connected.close();
}

task<> drain_one(handle_ptr by, subscription_ptr drained) {
  by->client->stop_delivery(drained);
  task<> stops = flush_or_lose(by);
  co_await std::move(stops);
  by->client->end_subscription(drained, {});
}

[[noreturn]] void throw_lost_behind_end(const subscription_state& subscription,
                                        std::uint64_t lost) {
  throw error(failure::too_much_kept,
              "troupe: nats: too much waited to be read: the subscription to " +
                  subscription.subject + " has ended, and its last " + std::to_string(lost) +
                  " messages are lost: read faster, or allow more (options::unread_bytes_max, and "
                  "messages_max and bytes_max of the subscription)");
}

task<std::optional<message>> next_of(handle_ptr by, subscription_ptr subscription) {
  auto waits = subscription->arrived.receive();
  std::optional<message> got = co_await std::move(waits);
  if (got) {
    // order: relaxed  a bound; the bytes that it counts came through the channel
    subscription->bytes.fetch_sub(bytes_of(*got), std::memory_order_relaxed);
    subscription->unread.take(memory_of(*got));
    co_return got;
  }
  by->client->leave(subscription);
  subscription->ended.check();
  std::uint64_t lost = 0;
  {
    const std::lock_guard taking(subscription->giving_way);
    // order: relaxed  the mutex orders it, and no later message has the number
    lost = subscription->missed_now.exchange(0, std::memory_order_relaxed);
  }
  if (lost != 0) throw_lost_behind_end(*subscription, lost);
  co_return std::nullopt;
}

task<std::optional<message>> ended() { co_return std::nullopt; }

task<subscription> subscribed(subscription result) { co_return result; }

// Without a wait if it can.
task<> publish_now(const handle_ptr& by, std::string_view subject, std::string_view reply,
                   const headers& head, std::string_view payload) {
  check_to_publish(subject);
  if (!reply.empty()) check_to_publish(reply);
  if (!this_call::trace() && by->client->try_publish(subject, reply, &head, payload))
    return nothing();
  message outgoing{std::string(subject), std::string(payload)};
  outgoing.reply = reply;
  outgoing.head = head;
  if (this_call::trace()) {
    add_trace(*by->client, outgoing.head);
    if (by->client->try_publish(outgoing.subject, outgoing.reply, &outgoing.head, outgoing.payload))
      return nothing();
  }
  return publish_later(by, std::move(outgoing));
}

}  // namespace

connection::connection(runtime& on, std::string_view servers, const options& chosen) {
  auto core = std::make_shared<client_state>(parse_servers(servers), checked(chosen));
  core->show(*observing::components_of(on));
  by_ = std::make_shared<const client_handle>(core);
  on.spawn(client_state::run(std::move(core)));
}

task<connection> connect(std::string servers, options chosen) {
  auto core = std::make_shared<client_state>(parse_servers(servers), checked(chosen));
  core->show(*observing::components_here("nats::connect"));
  connection by(std::make_shared<const client_handle>(core));
  // Before the first attempt, which may fail at once.
  task<> flushes = await(by.by_, core->start_flush());
  static_cast<void>(spawn(client_state::run(std::move(core))));
  co_await std::move(flushes);
  co_return by;
}

task<> connection::publish(std::string_view subject, std::string_view payload) const {
  return publish_now(by_, subject, {}, {}, payload);
}
task<> connection::publish(message outgoing) const {
  return publish_now(by_, outgoing.subject, outgoing.reply, outgoing.head, outgoing.payload);
}
bool connection::try_publish(std::string_view subject, std::string_view payload) const {
  check_to_publish(subject);
  return by_->client->try_publish(subject, {}, nullptr, payload);
}

bool connection::try_publish_joined(std::string_view subject, std::string_view lead,
                                    std::initializer_list<std::string_view> pieces) const {
  return by_->client->try_publish_joined(subject, lead, pieces);
}

task<message> connection::request(std::string_view subject, std::string_view payload) const {
  check_to_publish(subject);
  return ask(by_, message(std::string(subject), std::string(payload)));
}
task<message> connection::request(message outgoing) const {
  check_to_publish(outgoing.subject);
  return ask(by_, std::move(outgoing));
}

task<stored> connection::store(std::string_view subject, std::string_view payload,
                               const store_options& chosen) const {
  return store(message(std::string(subject), std::string(payload)), chosen);
}
task<stored> connection::store(message outgoing, const store_options& chosen) const {
  check_to_publish(outgoing.subject);
  add_expectations(outgoing.head, chosen);
  return store_message(by_, std::move(outgoing));
}

task<subscription> connection::subscribe(std::string_view subject,
                                         const subscribe_options& chosen) const {
  check_to_subscribe(subject);
  check_queue(chosen.queue);
  if (chosen.messages_max == 0 || chosen.bytes_max == 0)
    throw option_error("troupe: nats: messages_max and bytes_max must be 1 or more");
  return subscribed(subscription(by_, by_->client->subscribe(subject, chosen)));
}

task<> connection::flush() const { return flush_now(by_); }
task<> connection::drain() const { return drain_all(by_); }
void connection::close() const noexcept { by_->client->close(); }
connection::status connection::now() const { return by_->client->now(); }

subscription::subscription(std::shared_ptr<const client_handle> by,
                           std::shared_ptr<subscription_state> state) noexcept
    : by_(std::move(by)), state_(std::move(state)) {}
subscription::subscription(subscription&&) noexcept = default;
subscription::~subscription() { unsubscribe(); }

task<std::optional<message>> subscription::next() {
  if (state_ == nullptr) return ended();
  return next_of(by_, state_);
}
std::uint64_t subscription::missed() const noexcept {
  // order: relaxed  statistic; publishes nothing
  return state_ == nullptr ? 0 : state_->missed.load(std::memory_order_relaxed);
}
bool subscription::has_ended() const {
  return state_ == nullptr || by_->client->has_ended(*state_);
}
void subscription::unsubscribe() noexcept {
  if (state_ == nullptr) return;
  by_->client->unsubscribe(state_);
  by_->client->leave(state_);
  state_.reset();
}
task<> subscription::drain() {
  if (state_ == nullptr) return nothing();
  return drain_one(by_, state_);
}

}  // namespace troupe::nats
