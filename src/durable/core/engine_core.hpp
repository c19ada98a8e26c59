// engine_core: the base of an engine's parts: its runtime, storage, options and classes, and the
// state that the parts share. It includes none of the parts.
//
// Locks: one mutex guards the state, all of it together: a turn's end changes batches, actors,
// inbox, known messages and shards at once. The mutex is held for some hundred ns at a time, and
// never while code of the program runs (a handler, or an object's end), while the storage works, or
// while a caller is answered.
// Rejected: a mutex for each part. Every turn would lock five of them, and a failed batch all.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "durable/core/store_numbers.hpp"
#include "durable/memory/actor_in_memory.hpp"
#include "durable/memory/classes.hpp"
#include "durable/memory/filling.hpp"
#include "durable/memory/outside_calls.hpp"
#include "durable/memory/record.hpp"
#include "durable/memory/shard_scope.hpp"
#include "durable/memory/wall_clock.hpp"
#include "durable/state/actors.hpp"
#include "durable/state/availability.hpp"
#include "durable/state/batches.hpp"
#include "durable/state/inbox.hpp"
#include "durable/state/known_messages.hpp"
#include "durable/state/outboxes.hpp"
#include "durable/state/reminders.hpp"
#include "durable/state/shards.hpp"
#include "troupe/durable/kind.hpp"
#include "troupe/durable/storage.hpp"
#include "troupe/durable/store.hpp"
#include "troupe/runtime/runtime.hpp"

namespace troupe::durable::parts {

using engine_ref = std::shared_ptr<engine>;

// The tasks that every part may need and that belong to the parts on top: a message that comes
// needs a task that handles it, and a change needs one that stores it.
class engine_tasks {
 public:
  engine_tasks() = default;
  engine_tasks(const engine_tasks&) = delete;
  engine_tasks& operator=(const engine_tasks&) = delete;

  // Keeps the engine alive, and its parts with it.
  virtual engine_ref keep() = 0;
  // Handles the messages of ready actors until no actor is ready.
  virtual task<> run_ready(engine_ref keeps) = 0;
  // Stores batches until nothing is to be stored.
  virtual task<> store_all(engine_ref keeps) = 0;
  // Reads the inbox until nothing is unread, or nothing may be read.
  virtual task<> read_inbox(engine_ref keeps) = 0;

 protected:
  ~engine_tasks() = default;
};

class engine_core {
 public:
  // `scope`: null for a store that has its database alone. Errors: option_error.
  engine_core(engine_tasks& above, runtime& on, std::unique_ptr<durable::storage> database,
              durable::options options, std::vector<kind_table> kinds,
              std::shared_ptr<shard_scope> scope);
  engine_core(const engine_core&) = delete;
  engine_core& operator=(const engine_core&) = delete;

  // Thread: any.
  engine_tasks& upper_tasks;
  runtime& on;
  const std::unique_ptr<durable::storage> storage;
  const durable::options chosen;
  parts::classes classes;
  wall_clock clock;

  mutable std::mutex mutex;
  // Guarded by the mutex:
  parts::reminders reminders;
  availability health;
  parts::inbox inbox;
  parts::batches batches;
  parts::actors actors;
  known_messages known;
  parts::numbers numbers;
  parts::shards shards;
  parts::outboxes outboxes;
  // Grows when everything in memory is forgotten.
  std::uint64_t generation = 1;

  // The functions below are for any thread, without the mutex or with it.

  // The message has no id and no origin. Errors: as check_name, and unknown_method.
  record_ref make_record(request& request) const;
  // Errors: usage_error.
  void check_size(std::size_t size, const char* subject) const;
  void check_name(const kind_table& kind, std::string_view key) const;
  // `starts` gets an engine_ref, and returns a task. It runs later, on the pool.
  template <class Start>
  void start(Start starts) {
    const outside_calls none;
    static_cast<void>(on.spawn(starts(upper_tasks.keep())));
  }
  std::int64_t now_ns() const { return on.now().count(); }

  // Between attempts while the database is unavailable. In a cluster a node answers soon after its
  // leases are taken or renewed, and therefore tries more often than a lease may be short. A pause
  // of years counts as one day, so that it can be doubled.
  std::chrono::milliseconds away_first() const noexcept;
  std::chrono::milliseconds pause_max() const noexcept {
    return std::chrono::milliseconds(!shards.is_divided() ? 5'000 : 500);
  }
  // The pause after this one.
  std::chrono::milliseconds longer(std::chrono::milliseconds pause) const noexcept;

  // With the mutex held.

  // Something is to be stored.
  void need_commit();
  // An actor will be ready. Throws if no runner is at work, and none can begin.
  void need_runner();
  // Something may be unread, and there may be room for it.
  void need_inbox();
  bool is_current(const turn_state& turn) const noexcept { return turn.generation == generation; }
  // An ask of a handler on this node continues while its shard is drained.
  bool may_begin(const record& message) const noexcept {
    return message.asker != nullptr ? shards.is_here(message.row.shard)
                                    : shards.is_open(message.row.shard);
  }
  // The open batch changes or answers something of this shard.
  void touch(std::uint32_t shard) {
    if (shards.is_divided()) batches.open().touched.set(shard);
  }
  // The same for the shards of the turn and of all handlers that wait for it.
  void touch_all(const turn_state& done);
  void make_dead_letter(const record_ref& message, const handler_failed& why);
};

// The mutex. Its release also destroys the objects that were dropped under it: they are the
// program's, and their destructors may use the store.
class guard {
 public:
  explicit guard(engine_core& core) : core_(core), lock_(core.mutex) {}
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;
  ~guard() { unlock(); }
  void unlock() noexcept {
    if (!lock_.owns_lock()) return;
    const std::vector<object> gone = core_.actors.take_gone();
    lock_.unlock();
  }

 private:
  engine_core& core_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace troupe::durable::parts
