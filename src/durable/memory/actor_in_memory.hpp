// activation: a durable actor in memory; turn_state: a handler of it while it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "durable/memory/message_queue.hpp"
#include "durable/memory/record.hpp"
#include "troupe/base/intrusive_list.hpp"
#include "troupe/durable/kind.hpp"
#include "troupe/durable/storage.hpp"

namespace troupe::durable::parts {

// A durable actor in memory.
struct activation {
  activation(const kind_table& kind, std::string key, std::uint32_t shard)
      : kind(kind), key(std::move(key)), shard(shard) {}
  activation(const activation&) = delete;
  activation& operator=(const activation&) = delete;

  const kind_table& kind;
  const std::string key;
  const std::uint32_t shard;
  message_queue waits;
  bool runs = false;         // a task handles its messages, or will
  bool refused = false;      // its stored state cannot be read: until the store is opened anew
  object it;                 // null: not loaded
  bytes last;                // the object's bytes after its last turn that succeeded
  std::uint64_t events = 0;  // how many it has had
  std::uint64_t events_in_snapshot = 0;
  std::uint64_t generation = 0;        // in which it was loaded
  std::uint64_t changed_with = 0;      // the number of the last batch that changes its stored state
  std::uint64_t state_with = 0;        // the number of the last batch that has its whole state,
  std::size_t place_in_batch = 0;      // and where, as long as that batch is open
  std::vector<activation*> waits_for;  // whom its handler has asked
  std::size_t asks = 0;                // nested asks of its handlers that have no answer,
  std::size_t asked = 0;               // and those that others have sent to it
  record_ref handles;                  // the message that its handler handles
  // Something that the handler asked failed for a reason that passes: it runs again.
  bool gives_up = false;
  std::uint32_t gave_up = 0;   // how often in a row
  std::uint32_t in_a_row = 0;  // messages handled since a runner took it
  std::int64_t used_ns = 0;
  base::list_link<activation> listed;  // of the unused actors, or of the ready ones
};

// A handler while it runs.
struct turn_state {
  turn_state(turns& owner, activation& actor, record_ref message) noexcept
      : owner(owner), actor(actor), handles(std::move(message)), generation(actor.generation) {}
  turns& owner;
  activation& actor;
  const record_ref handles;
  const std::uint64_t generation;
  std::uint64_t parts = 0;  // ids given so far
  bool has_asked = false;
  bool has_applied = false;  // its events have changed the object
  std::vector<record_ref> sent;
  std::vector<stored_reminder> reminders;
  std::vector<batch::reminder_name> forgotten;
};

}  // namespace troupe::durable::parts
