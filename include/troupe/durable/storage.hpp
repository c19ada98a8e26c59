// storage: the database in which a store of durable actors keeps its data: SQLite, PostgreSQL or a
// simulated database. Programs choose one; they call none of its functions.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/database/error.hpp"
#include "troupe/durable/message_id.hpp"
#include "troupe/task/task.hpp"

namespace troupe::durable {

// A value that is stored, or an answer, as encode() makes it.
using bytes = std::vector<std::byte>;

// The class registration and the key of a durable actor.
struct actor_name {
  std::string kind;
  std::string key;
  auto operator<=>(const actor_name&) const = default;
};

// The keys that store::keys() returns.
struct key_range {
  std::string prefix{};                // of each of them
  std::optional<std::string> after{};  // only keys behind this key, the last of the page before
  std::size_t most = 100;              // 1 to 10,000
};

// The way in which a message came into the inbox.
enum class origin : std::uint8_t {
  post = 0,    // the sender waits until the message is stored, not for an answer
  ask = 1,     // a party in this process waits for the answer; after a restart no party waits
  nested = 2,  // another durable actor waits: the answer is stored under the message's id
};

// A message in the inbox of a store.
struct stored_message {
  std::uint64_t order = 0;  // in the inbox of the whole store
  // In a cluster: the shard whose owner acts on the message: the receiver's, or, as long as the
  // message is on its way to another node, the sender's.
  std::uint32_t shard = 0;
  message_id id;
  bool named = false;  // the sender chose the id: the answer is stored, and repeated
  origin from = origin::post;
  actor_name to;
  message_id asker;  // of a nested ask: the message whose handler asks
  std::string method;
  std::uint64_t signature = 0;  // the fingerprint of the method's parameters and of its result
  bytes arguments;
  std::uint32_t failures = 0;
};

// The request in a message. It is kept with the id that a sender chose, so that the id identifies
// this message alone (docs/protocols/identity.md).
struct call_identity {
  std::string method;           // empty: not known, for the id was stored by an older version
  std::uint64_t arguments = 0;  // a fingerprint of their bytes

  static call_identity of(const stored_message& message);
  // Whether both may belong to one message: true if one of them is not known.
  bool fits(const call_identity& other) const noexcept {
    return method.empty() || other.method.empty() || *this == other;
  }
  bool operator==(const call_identity&) const = default;
};

// The state of an actor in a store.
struct stored_state {
  std::uint32_t schema = 1;
  std::uint64_t fingerprint = 0;
  bytes value;
  // Of a class with events: how many events `value` contains. Further ones are in `events`.
  std::uint64_t number = 0;
  std::vector<bytes> events;
};

// An answer that is kept, so that the same call is not handled again.
struct stored_answer {
  message_id id;
  message_id asker;  // none: the answer to an id that the sender chose
  std::chrono::sys_seconds at{};
  bool failed = false;
  std::string error_type;
  bytes value;         // or the text of the error
  call_identity call;  // of an id that the sender chose
};

// A message that was given up, with its last error.
struct dead_letter {
  stored_message message;
  std::string error_type;
  std::string error;
  std::chrono::sys_seconds at{};
};

// A message that is to be sent at a given time, once or repeatedly.
struct stored_reminder {
  actor_name to;
  std::string name;  // each actor has at most one reminder of a name
  std::chrono::sys_time<std::chrono::milliseconds> due{};
  // "" (once), "every MILLISECONDS" or "cron TEXT".
  std::string rule;
  std::string method;
  std::uint64_t signature = 0;
  bytes arguments;
  std::uint32_t shard = 0;  // in a cluster: the actor's
};

// The number of parts into which the actors of a cluster are divided.
inline constexpr std::uint32_t shard_count = 1'024;

// Such a part, and the number of the change by which a node became its owner.
struct held_shard {
  std::uint32_t shard = 0;
  std::uint64_t fence = 0;
  auto operator<=>(const held_shard&) const = default;
};

// The class of an actor, from the program or from the stored data.
struct class_shape {
  std::string kind;
  std::uint32_t schema = 1;
  std::uint64_t fingerprint = 0;
  std::string shape;
};

// One transaction. Its parts are done in this order.
struct batch {
  // One more than the number of the batch before.
  std::uint64_t number = 0;
  std::vector<std::shared_ptr<const stored_message>> arrived;
  struct failed_message {
    std::uint64_t order;
    std::uint32_t failures;
  };
  std::vector<failed_message> failed;
  std::vector<std::uint64_t> handled;  // orders of messages that leave the inbox
  struct changed_state {
    actor_name actor;
    stored_state state;
  };
  // The whole state of an actor.
  std::vector<changed_state> states;
  struct appended_event {
    actor_name actor;
    std::uint64_t number;
    bytes value;
  };
  std::vector<appended_event> events;
  std::vector<stored_answer> answers;
  // Messages whose handlers have ended: the answers to their nested asks are removed.
  std::vector<message_id> ended;
  std::vector<dead_letter> dead;
  std::vector<stored_reminder> reminders;  // replaces the reminder of the same actor and name
  struct reminder_name {
    actor_name actor;
    std::string name;
  };
  std::vector<reminder_name> removed_reminders;
  // A reminder that came due in this batch; its message is in `arrived`. If the stored reminder
  // still has the time `due`, it gets the time `next`; without `next` it is removed.
  struct fired_reminder {
    actor_name actor;
    std::string name;
    std::chrono::sys_time<std::chrono::milliseconds> due;
    std::optional<std::chrono::sys_time<std::chrono::milliseconds>> next;
  };
  std::vector<fired_reminder> fired_reminders;
  // Answers to ids that senders chose are removed when they are older; zero: none are.
  std::chrono::sys_seconds forget_before{};
  // In a cluster: the shards of the actors that this batch changes. Nothing is stored unless all of
  // them are still this node's.
  std::vector<held_shard> shards;

  bool empty() const noexcept {
    return arrived.empty() && failed.empty() && handled.empty() && states.empty() &&
           events.empty() && answers.empty() && ended.empty() && dead.empty() &&
           reminders.empty() && removed_reminders.empty() && fired_reminders.empty();
  }
};

// The record of an id.
struct found_message {
  std::optional<stored_answer> answer;
  bool in_inbox = false;
  call_identity call;  // of the message that was answered, or is in the inbox
};

// The data that a store finds when it opens.
struct opened_storage {
  std::uint64_t last_batch = 0;
  std::uint64_t last_order = 0;  // in a cluster: orders_at_once are reserved behind it
  std::vector<class_shape> classes;
};

// Throws usage_error for a name with more bytes than fit into the index of a database, beside a
// key.
inline constexpr std::size_t reminder_name_bytes_max = 150;
void check_reminder_name(std::string_view name);

// So many numbers of messages are reserved at once in a cluster.
inline constexpr std::uint64_t orders_at_once = std::uint64_t{1} << 36;

// A storage belongs to one store; the store calls at most one commit() at a time. Otherwise all
// functions may run concurrently. Errors: database::error with its kind; the call has then stored
// nothing, unless effect() is unknown: last_batch() then shows the outcome. store_taken when
// another process has called open() since.
class storage {
 public:
  storage() = default;
  storage(const storage&) = delete;
  storage& operator=(const storage&) = delete;
  virtual ~storage() = default;

  // A short text that names the database, for errors.
  virtual std::string name() const = 0;
  // Throws usage_error if no actor of that class and key can be stored here. It is called wherever
  // a program, a message or an import names an actor. Thread: any. Cost: some ns.
  virtual void check_name(std::string_view kind, std::string_view key) const;
  // Makes or upgrades the tables, and takes the store over from the process that had it before,
  // whose later commits are refused. schema_error for tables of a newer version.
  virtual task<opened_storage> open() = 0;
  // Adds the shapes of these classes; they replace shapes of the same number.
  virtual task<> keep_classes(std::vector<class_shape> added) = 0;
  // No value: the actor was never stored.
  virtual task<std::optional<stored_state>> load(actor_name actor) = 0;
  // The first keys in the range, of actors of that class whose state or events are stored, in the
  // storage's own order, which store::keys() describes.
  virtual task<std::vector<std::string>> keys(std::string kind, key_range range) = 0;
  // The messages of the inbox with a larger order, the smallest first.
  virtual task<std::vector<stored_message>> inbox(std::uint64_t after, std::size_t most) = 0;
  virtual task<found_message> find(message_id id) = 0;
  // The reminders that are due first.
  virtual task<std::vector<stored_reminder>> reminders(std::size_t most) = 0;
  virtual task<> commit(std::shared_ptr<const batch> all) = 0;
  // The number of the last batch that is stored.
  virtual task<std::uint64_t> last_batch() = 0;

  // The rest is for the nodes of a cluster, whose storages share one database and refuse no other
  // storage: each has batches of its own, and commit() throws shard_moved for shards that are not
  // this node's any more. Without a cluster they throw, and do nothing.

  // Reserves orders_at_once numbers of messages; the first is one more than the result. They are
  // larger than all that any node has reserved before.
  virtual task<std::uint64_t> reserve_orders();
  // From now on inbox() and reminders() read only the rows of these shards.
  virtual void act_for(std::vector<std::uint32_t> shards);
};

}  // namespace troupe::durable
