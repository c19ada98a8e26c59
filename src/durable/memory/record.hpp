// record: a message of a store in memory.
//
// Invariants
//   M1  A message leaves `here` for one of the other places and comes back from there, before it
//       goes to a third one. From an outbox no message comes back.
//   M2  A message waits for one actor at most, once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/invariant.hpp"
#include "troupe/durable/kind.hpp"
#include "troupe/durable/storage.hpp"
#include "troupe/memory/block_pool.hpp"
#include "troupe/task/call_context.hpp"

namespace troupe::durable::parts {

struct activation;
class turns;

// The same comparison as call_identity makes for stored messages, for two in memory.
inline bool is_same_call(const stored_message& message, const stored_message& other) noexcept {
  return message.to == other.to && message.method == other.method &&
         message.arguments == other.arguments;
}

// The place of a message that is listed in memory.
enum class message_place : std::uint8_t {
  here,       // it waits for its actor, is handled, or is in a batch
  looked_up,  // the storage is being asked for its id
  left_out,   // it is in the inbox, or will be, and is read from there
  elsewhere,  // a nested ask: another node is asked for the answer
  outbox,     // it goes to another node when it is stored
};

// A message in memory.
struct record {
  stored_message row;
  const kind_table* kind = nullptr;
  const method_entry* method = nullptr;       // null: the class has no such method
  std::unique_ptr<answer_to> answer;          // gets the handler's result, when that is stored
  std::unique_ptr<answer_to> on_stored;       // notified when the message or its turn is stored
  std::uint64_t counted_in = 0;               // the generation in which it counts as waiting,
  std::size_t counted_bytes = 0;              // and the bytes of its arguments then
  bool unheard = false;                       // a nested ask: the message that asked has ended
  message_place place = message_place::here;  // changed by move()
  // 0: in no batch; otherwise the number of the batch with which it came, or comes, into the inbox.
  std::uint64_t stored_with = 0;
  std::size_t place_in_batch = 0;  // among those that arrive, while that batch is open
  std::uint32_t failures = 0;
  // It may have been handled before: its nested asks look for stored answers.
  bool again = false;
  bool asked_elsewhere = false;  // its handler has asked actors of other nodes
  // Of a nested ask: the actor whose handler waits, and the one for which it waits, if it is here.
  activation* asker = nullptr;
  activation* asked = nullptr;
  std::weak_ptr<record> asked_by;             // the message that this handler handles
  std::vector<std::shared_ptr<record>> asks;  // the asks of its handlers
  std::shared_ptr<record> next_waiting;       // behind it in its actor's queue
  tasks::context_ref trace;

  bool is(message_place where) const noexcept { return place == where; }
  void move(message_place to) noexcept {
    TROUPE_INVARIANT(
        to == message_place::here ? place != message_place::outbox : place == message_place::here,
        "M1");
    place = to;
  }
};
using record_ref = std::shared_ptr<record>;

// Each message has a record, which another thread often frees: its memory comes from the pool.
inline record_ref new_record() {
  return std::allocate_shared<record>(memory::block_allocator<record>());
}

}  // namespace troupe::durable::parts
