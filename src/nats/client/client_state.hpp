// client_state: the state that the handles of one connection to NATS share, and the tasks that keep
// it connected.
//
// Threads: any; `mutex_` guards the members behind it. Of the tasks, one connects and reads (run),
// and for each connection one writes and one keeps it alive.
// Invariants
//   C1  a call that has not ended is in `waiting_`, `sent_` or `drains_` under its number, in one
//       of them; the thread that removes it resolves its promise, outside of the mutex. A call
//       therefore ends once.
//   C2  calls in `waiting_` go first: nothing else is published while it is not empty.
//   C3  after `closed_` was set no call is added, and those that waited were taken out.
//   C4  a subscription's channel is closed after `ended` was written; only the reader sends to it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kit/secrets.hpp"
#include "nats/client/unread.hpp"
#include "nats/client/wire.hpp"
#include "nats/protocol/protocol_state.hpp"
#include "nats/protocol/servers.hpp"
#include "observe/numbers/sharded.hpp"
#include "runtime/observing/numbers/component_list.hpp"
#include "troupe/base/small_mutex.hpp"
#include "troupe/nats/connection.hpp"
#include "troupe/sync/channel.hpp"
#include "troupe/task/future.hpp"

namespace troupe::nats {

// How a call has ended. No exception: each caller throws its own, on its own thread.
struct outcome {
  bool good = true;
  failure kind = failure::closed;
  bool may_have_run = false;
  std::string text;

  static outcome failed(failure kind, std::string text, bool may_have_run = false) {
    return {false, kind, may_have_run, std::move(text)};
  }
  void check() const {
    if (!good) throw error(kind, text, may_have_run);
  }
};
struct answer {
  outcome end;
  message got;
};

// The bytes of a message that count towards the limit of waiting bytes.
inline std::size_t bytes_of(const message& content) noexcept {
  const std::size_t header = content.head.size() == 0 ? 0 : content.head.block_bytes();
  return content.subject.size() + content.reply.size() + content.payload.size() + header;
}

// The memory that a message takes, besides unread_account::message_overhead.
inline std::size_t memory_of(const message& content) noexcept {
  const std::size_t header = content.head.size() == 0 ? 0 : content.head.block_bytes();
  return content.subject.capacity() + content.reply.capacity() + content.payload.capacity() +
         header;
}

class client_state;

struct subscription_state : std::enable_shared_from_this<subscription_state> {
  subscription_state(std::string_view to, const subscribe_options& chosen,
                     std::shared_ptr<unread_peer> peer, std::weak_ptr<client_state> by)
      : subject(to),
        messages_max(chosen.messages_max),
        bytes_max(chosen.bytes_max),
        ends_when_largest(chosen.ends_when_largest),
        owner(std::move(by)),
        unread(std::move(peer), *this) {}

  // It was asked to end. Thread: any.
  void give_way();

  const std::string subject;
  const std::size_t messages_max, bytes_max;
  const channel<message> arrived = channel<message>::unbounded();
  std::atomic<std::size_t> bytes{0};         // in `arrived`
  std::atomic<std::uint64_t> missed{0};      // in all
  std::atomic<std::uint64_t> missed_now{0};  // since the last one that had room
  // Held while give_way() takes messages: a reader that finds the end waits for their number.
  std::mutex giving_way;
  std::uint64_t sid = 0;
  outcome ended;        // written before `arrived` is closed
  bool at_end = false;  // guarded by the client: `ended` is written
  bool gone = false;    // guarded by the client: it has no reader any more
  const bool ends_when_largest;
  const std::weak_ptr<client_state> owner;
  std::shared_ptr<subscription_state> next_to_end;  // guarded by the book
  unread_account unread;
};
using subscription_ptr = std::shared_ptr<subscription_state>;

class client_state : public std::enable_shared_from_this<client_state> {
 public:
  client_state(std::vector<server> servers, const options& given);

  // The tasks.
  static task<> run(std::shared_ptr<client_state> self);

  // Calls. Those that throw do it before anything is sent.
  // False: it must wait (start_publish).
  bool try_publish(std::string_view subject, std::string_view reply, const headers* head,
                   std::string_view payload);
  bool try_publish_joined(std::string_view subject, std::string_view lead,
                          std::initializer_list<std::string_view> pieces);
  struct call {
    std::uint64_t number = 0;
    future<answer> end;
  };
  call start_publish(message&& outgoing);
  call start_request(message&& outgoing);
  call start_flush();
  // The caller has given up.
  void forget(std::uint64_t call) noexcept;

  subscription_ptr subscribe(std::string_view subject, const subscribe_options& chosen);
  void unsubscribe(const subscription_ptr& subscription) noexcept;
  void stop_delivery(const subscription_ptr& subscription);
  bool has_ended(const subscription_state& subscription);
  void end_subscription(const subscription_ptr& subscription, const outcome& how);
  void note_missed(std::uint64_t messages) noexcept { missed_.add(messages); }
  // Its reader is at the end, or was destroyed.
  void leave(const subscription_ptr& subscription) noexcept;

  // For drain(): subscribe() is refused from now on, and nothing new comes.
  void begin_drain();
  void end_subscriptions();
  // Ready when no one reads any more.
  call start_wait_for_readers();

  // Whether a message carries the trace of its caller.
  bool sends_traces();
  void close() noexcept;   // at once
  void finish() noexcept;  // once all that waits was sent
  connection::status now();

  // Shows its numbers among a runtime's other numbers, until it ends.
  void show(observing::component_list& among);
  void note_answer(std::chrono::nanoseconds took) noexcept;
  void note_failed_request() noexcept { failed_requests_.add(1); }

  const options chosen;

 private:
  struct waiting_call {
    message outgoing;
    promise<answer> to;
    bool asks = false;
  };
  // Calls that end once the mutex is free.
  struct endings {
    void add(promise<answer>&& to, outcome how, message got = {}) {
      all.push_back({std::move(to), answer{std::move(how), std::move(got)}});
    }
    void resolve();
    struct ending {
      promise<answer> to;
      answer how;
    };
    std::vector<ending> all;
    std::optional<promise<>> writer;
  };

  call start_call(message&& outgoing, bool asks);

  // The tasks' parts.
  task<> serve(wire_ptr on);
  static task<> write_out(std::shared_ptr<client_state> self, wire_ptr on);
  static task<> keep_alive(std::shared_ptr<client_state> self, wire_ptr on);
  task<> read_in(wire_ptr on);
  static task<wire_ptr> connect_some(std::shared_ptr<client_state> self, bool first);
  static task<wire_ptr> one_round(std::shared_ptr<client_state> self);
  bool receive(wire& on, parser::event event);
  void deliver(const subscription_ptr& subscription, happened& event);
  bool begin(const wire_ptr& on);
  void lose(const wire_ptr& on);
  void end(const outcome& why);
  void tell(incident event, std::string_view text) const;

  struct numbers;
  numbers read_numbers();

  // Under the mutex.
  void check_open() const;
  outcome misfit(std::string_view subject, const headers* head, std::string_view payload) const;
  bool must_wait() const noexcept;
  void wake_writer(endings& later) noexcept;
  void let_in(endings& later);
  void take_sent(std::uint64_t number, outcome how, endings& later);
  void end_under(subscription_state& subscription, const outcome& how);

  base::small_mutex mutex_;
  kit::secret_source secrets_;
  protocol_state talk_;
  server_list servers_;
  std::map<std::uint64_t, waiting_call> waiting_;            // for room, or for a server
  std::unordered_map<std::uint64_t, promise<answer>> sent_;  // requests and flushes
  std::map<std::uint64_t, promise<answer>> drains_;          // wait for readers
  std::map<std::uint64_t, subscription_ptr> subscriptions_;
  std::optional<promise<>> writer_;  // it waits for bytes
  wire_ptr on_;                      // the connection; null: none
  std::optional<outcome> closed_;
  std::string server_;
  std::uint64_t last_call_ = 0, connections_ = 0;
  std::uint64_t published_ = 0, received_ = 0;  // messages
  std::size_t readers_ = 0;
  bool draining_ = false, finishing_ = false;
  std::stop_source ends_;
  const std::shared_ptr<wire_options> wires_;
  const std::shared_ptr<unread_peer> unread_;
  observe::sharded_counter missed_, failed_requests_;
  observe::sharded_histogram answered_;
  observing::component_list::entry shown_;
};

// The state that the copies of a connection share: the client ends with the last.
class client_handle {
 public:
  explicit client_handle(std::shared_ptr<client_state> state) noexcept : client(std::move(state)) {}
  client_handle(const client_handle&) = delete;
  client_handle& operator=(const client_handle&) = delete;
  ~client_handle() { client->finish(); }
  const std::shared_ptr<client_state> client;
};

}  // namespace troupe::nats
