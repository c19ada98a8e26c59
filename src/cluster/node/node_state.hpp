// node_state: the state that the copies of a node share: the actors that are here, and the messages
// on their way to other nodes.
//
// Invariants
//   N1  An actor of a shard is found and made, and gets its messages, under the lock of the shard,
//       and while the node owns the shard. A drained shard therefore gets no message.
//   N2  Who has a message for an actor keeps its activation: an actor that only the table has is
//       at rest. Only such actors are put away, and a shard is handed over when all are.
//   N3  A handler begins, and its answer is given, only while the node owns the shard under the
//       fence that it had when the actor was made.
//   N4  A message to another node is sent again only if it is known that it did not run.
// The whole protocol: docs/protocols/cluster.md.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cluster/node/frames.hpp"
#include "cluster/placement/placement.hpp"
#include "cluster/transport/transport.hpp"
#include "durable/engine/engine.hpp"
#include "runtime/observing/component_list.hpp"
#include "troupe/cluster/node.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/sync/channel.hpp"
#include "troupe/sync/semaphore.hpp"
#include "troupe/task/event.hpp"

namespace troupe::cluster::parts {

// order: counters, on which no decision depends.
inline constexpr auto relaxed = std::memory_order_relaxed;

using durable::parts::outside_calls;

// Before a message looks again for the owner of its actor; it doubles.
inline constexpr std::chrono::milliseconds pause_first{2}, pause_last{100};

// How options::database begins when it names a SQLite file.
inline constexpr std::string_view sqlite_database = "sqlite:";

// A message to an actor that is not here, until it was sent and answered.
struct outgoing {
  outgoing() noexcept {}  // no aggregate, since g++ 12 destroys those twice in co_await expressions
  address target;
  const method_entry* method = nullptr;
  bytes arguments;
  std::unique_ptr<answer_to> answer;  // null: a tell
  std::uint64_t number = 0;           // its place in the order of its route
  std::int64_t deadline_ns = 0;       // in the time of the runtime
  bool is_callers_deadline = false;
  bool may_have_run = false;
  std::string trace;
};

// Messages that were not sent yet, in the order in which they came. Each goes on when it is the
// first, and stays the first until its place ends, also while nobody owns the shard. Thread: one.
class waiting_line {
 public:
  class place {
   public:
    place(waiting_line& line, std::uint64_t number);
    place(const place&) = delete;
    place& operator=(const place&) = delete;
    ~place();
    task<> comes_first() const;

   private:
    waiting_line& line_;
    const std::uint64_t number_;
  };

 private:
  std::map<std::uint64_t, std::optional<event>> all_;  // by number; an event: a party waits
};

// Tells to the actors of one shard that could not be sent at once, in the order in which they came,
// with no ask between them. They are one message to the route, which sends one after the other.
struct tell_line {
  struct tell {
    std::string frame;
    std::int64_t deadline_ns = 0;  // in the time of the runtime
  };
  explicit tell_line(std::uint32_t its_shard) : shard(its_shard) {}
  const std::uint32_t shard;
  std::deque<tell> all;  // guarded by the lock of the shard
};

// Where tells to one shard go: the subject of its owner, made once for each owner.
struct tell_subject {
  std::shared_ptr<const member_row> owner;
  std::string subject;
};

// What is sent from this node to the actors of one shard, in order.
class route {
 public:
  static constexpr bool reentrant = true;
  explicit route(std::weak_ptr<node_state> node) noexcept : node_(std::move(node)) {}
  task<> send(std::unique_ptr<outgoing> what);
  task<> send_tells(std::shared_ptr<tell_line> what);

 private:
  const std::weak_ptr<node_state> node_;
  std::uint64_t count_ = 0;
  waiting_line line_;
};

// Of the key alone: actors of two classes with one key are rarely in one shard.
struct name_hash {
  std::size_t operator()(
      const std::pair<const class_table*, std::string_view>& name) const noexcept {
    return std::hash<std::string_view>()(name.second);
  }
};

struct shard_state {
  std::mutex mutex;
  bool is_open = false;  // owned, and not being drained
  std::uint64_t fence = 0;
  std::unordered_map<std::pair<const class_table*, std::string_view>, std::shared_ptr<activation>,
                     name_hash>
      actors;
  troupe::ref<route> out;
  tell_subject to;         // where the last tell went
  std::size_t queued = 0;  // messages with `out`: later ones from this node come behind them
  std::shared_ptr<tell_line>
      tells;  // the last of them, which takes more tells; null: there is none
};

// What a node stands on, apart from its runtime.
struct surroundings {
  std::unique_ptr<transport> way;
  std::function<std::unique_ptr<lease_store>()> leases;
  bool is_alone = false;  // its leases last for ever
  // Of its durable actors; null: it has none.
  std::unique_ptr<durable::storage> storage;
  // By which its leases run out; null: its machine's.
  std::function<std::chrono::nanoseconds()> clock{};
};

class node_state : public std::enable_shared_from_this<node_state> {
 public:
  node_state(runtime& on, options chosen, setup with);
  node_state(const node_state&) = delete;
  node_state& operator=(const node_state&) = delete;
  ~node_state();

  // Joins, in a task of its own, again and again until it has succeeded.
  void begin(surroundings with);
  task<> ready();
  static task<> stop(state_ref self);
  // As a crash does, for tests.
  void kill() noexcept;
  // Lets the actors go that are here, which keep the node.
  void let_go() noexcept;

  // `behind`: none is found while earlier messages from this node are under way to its shard.
  found_actor find(const address& what, bool behind);
  void remove(activation& actor) noexcept;
  void send_away(std::unique_ptr<outgoing> what);
  void tell_away(const address& target, const method_entry& method, const bytes& arguments);
  task<> deliver(std::unique_ptr<outgoing> what, waiting_line& in);
  task<> deliver_tells(std::shared_ptr<tell_line> what, waiting_line& in, std::uint64_t number);

  runtime& on() const noexcept { return on_; }
  const options& chosen() const noexcept { return chosen_; }
  const cluster::member& self() const noexcept { return self_; }
  std::int64_t now_ns() const { return on_.now().count(); }
  std::int64_t ns_after(time_span span) const { return span.after(on_.now()).count(); }
  bool owns(std::uint32_t shard, std::uint64_t fence) const noexcept;
  std::mutex& lock_of(std::uint32_t shard) noexcept { return shards_[shard].mutex; }
  const class_table* find_kind(const void* tag) const noexcept;
  const class_table* find_kind(std::string_view name) const noexcept;
  const exception_entry* find_exception(const std::type_info& type) const noexcept;
  const exception_entry* find_exception(std::string_view name) const noexcept;
  std::vector<cluster::member> members_now() const;
  channel<member_event> watch_members();
  cluster::counts counts() const;

  task<> publish(std::string topic, std::string frame);
  task<> subscribe(std::string topic, std::string group, std::shared_ptr<topic_reader> to);
  void unsubscribe(const std::shared_ptr<topic_reader>& reader) noexcept;

  // Of durable actors.
  const durable::store& store() const;
  static task<bytes> forward(state_ref self, durable::stored_message what);
  static task<bool> ask_for_circle(state_ref self, durable::parts::circle_question what);

  // An answer to another node, from whatever thread.
  void answer(std::string reply, std::string frame) noexcept;

 private:
  // Its readers on this node.
  struct topic {
    std::vector<std::shared_ptr<topic_reader>> readers;
    std::size_t next = 0;  // of a group, who gets the next one
  };
  using topic_name = std::pair<std::string, std::string>;  // subject and group

  static task<> answer_one(state_ref self, std::string reply, std::string frame);
  static task<> join(state_ref self);
  task<> open_way(bool& takes_own);
  std::unique_ptr<placement> make_placement();
  void replace_placement();
  task<> take(incoming message);
  bool take_now(const incoming& message);
  std::string serve(const request_frame& what, const std::string& reply, semaphore::permit permit);
  std::string serve_durable(const request_frame& what, const std::string& reply,
                            semaphore::permit permit);
  static task<> answer_durable(state_ref self, std::string reply, future<bytes> from,
                               semaphore::permit permit);
  std::string serve_circle(const request_frame& what, const std::string& reply,
                           semaphore::permit permit);
  static task<> answer_circle(state_ref self, std::string reply,
                              durable::parts::circle_question what, semaphore::permit permit);
  void open_engine(std::unique_ptr<durable::storage> in);
  task<bytes> forward_once(const durable::stored_message& what, const std::string& to, bool& again);
  void show();
  bool has_joined() const;
  void write_members(observing::json_text& text) const;
  void put_away_idle();
  void tell_others() noexcept;
  // Starts it, without a notice of its end.
  void quietly(std::function<task<>()> makes) noexcept;
  void end_watchers() noexcept;
  placement::hooks hooks();
  void gained(const std::vector<held_shard>& shards);
  void lost(const std::vector<std::uint32_t>& shards);
  void close(std::uint32_t shard) noexcept;
  void end_look(const held_shard& shard, bool goes) noexcept;
  void lose_all();
  // Whether durable actors of this node are in the database of the cluster.
  bool has_shared_store() const noexcept { return engine_ != nullptr && !is_alone_; }
  task<> drain(std::vector<held_shard> shards, placement::release released);
  std::vector<held_shard> hand_over(const std::vector<held_shard>& shards, bool closes);
  task<> rest(std::int64_t until_ns);
  void changed(std::vector<member_row> now);
  void end_later(std::vector<std::stop_source> asks, std::chrono::milliseconds pause);

  task<> attempt(outgoing& what, waiting_line& in);
  task<std::string> next_owner(outgoing& what, waiting_line& in, std::chrono::milliseconds pause);
  task<bool> try_once(outgoing& what, std::string to);
  bool hand_over_here(outgoing& what);
  bool tell_owner(std::uint32_t shard, tell_subject& subject, std::string_view frame);
  void queue_tell(shard_state& state, std::uint32_t shard, std::string frame);
  bool take_tells(tell_line& line, std::deque<tell_line::tell>& into);
  task<bool> try_tell(const tell_line::tell& what, std::uint32_t shard);
  task<> attempt_tell(const tell_line::tell& what, std::uint32_t shard);
  bool tell_here(std::string_view frame);
  bool settle(outgoing& what, std::string_view answer);
  std::string subject_of(std::string_view member) const;
  std::string topic_subject(std::string_view topic) const;
  task<> take_topic(topic_name name, std::string frame);
  std::string frame_of(const outgoing& what) const;
  std::stop_token end_of(const std::string& member);

  runtime& on_;
  const options chosen_;
  const setup with_;
  const cluster::member self_;
  std::unique_ptr<transport> way_;
  bool is_alone_ = false;
  std::function<std::unique_ptr<lease_store>()> make_leases_;
  std::function<std::chrono::nanoseconds()> clock_;
  std::unique_ptr<placement> placement_;            // replaced under mutex_, until it has joined
  std::shared_ptr<durable::parts::engine> engine_;  // null: no durable classes
  std::optional<durable::store> store_;
  std::atomic<bool> has_joined_{false};
  std::atomic<bool> is_leaving_{false};  // stop() was called: what runs goes on, and may ask others
  std::atomic<bool> is_stopped_{false};  // it sends nothing any more
  event joined_or_failed_;
  std::atomic<std::size_t> answering_{0};  // answers that were not sent yet
  std::array<shard_state, own_shard + 1> shards_;
  std::shared_ptr<semaphore> may_serve_;

  mutable std::mutex mutex_;   // guards what follows
  std::exception_ptr failed_;  // why it has not joined
  std::vector<member_row> members_;
  std::map<std::string, std::stop_source> ends_;  // of members to which messages are on their way
  std::set<std::string> leaving_;                 // members that have said so
  std::vector<channel<member_event>> watchers_;
  std::map<topic_name, topic> topics_;
  timer sweeper_;

  struct counters {
    std::atomic<std::size_t> actors{0}, waiting{0};
    std::atomic<std::uint64_t> created{0}, put_away{0}, local{0}, sent{0}, served{0}, sent_again{0},
        failed{0};
  };
  counters counts_;
  observing::component_list::entry shown_;  // last: it goes first
};

}  // namespace troupe::cluster::parts
