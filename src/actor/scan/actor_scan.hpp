// actor_scan: a list of a runtime's actors, page by page, while the program runs.
//
// Takes copies of the slabs by process_vm_readv: a system call that copies this process's own
// memory, and that fails where there is none any longer. The turns that run meanwhile therefore
// need no lock and no fence for it, and no thread is held up. Each fact about an actor in a copy
// was true at some instant, but not all of them at the same instant.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>

#include "troupe/actor/cell.hpp"
#include "troupe/actor/method_message.hpp"

namespace troupe::actor {

class actor_system;

enum class seen_state : std::uint8_t { inactive, active, suspended };

struct seen_actor {
  std::uint64_t id;
  const cell_type* type;
  seen_state state;
  // messages in its mailbox; of those that it has not looked at yet, at most 10,000 are counted
  std::uint32_t mail;
  const void* at = nullptr;           // its cell, which may go
  const void* supervision = nullptr;  // its supervision_state, which may be freed as well
  // there is mail that was not counted; then `state` of an actor that is suspended may be `active`
  bool has_more = false;
  // the handler that began last: only to be called if the runtime's counts know it, since it may be
  // any word when the slot was changed meanwhile
  message::handler last = nullptr;
};

// Calls `look` for each actor whose id is `from` or higher, in the order of ids, until it returns
// false. Returns the id of the actor for which it did, from which a next call may continue; 0 after
// the last actor. Spawned tasks are actors as well; those that sleep without an actor are not seen.
// Thread: any, one at a time. Cost: about 10 ms for 1,000,000 actors.
std::uint64_t scan_actors(const actor_system& system, std::uint64_t from,
                          const std::function<bool(const seen_actor&)>& look);

// The class of an actor that may have been freed meanwhile: then another actor's class, or null.
// Thread: any. Cost: about 1 us.
const cell_type* find_type(const void* actor) noexcept;
// The ids of parents, which may have been freed as well. Thread: one. Cost: about 1 us for each
// child.
class parent_ids {
 public:
  explicit parent_ids(const actor_system& system) noexcept : system_(system) {}
  // 0 if it has none. Throws std::bad_alloc.
  std::uint64_t find(const seen_actor& child);

 private:
  const actor_system& system_;
  std::unordered_map<const void*, std::uint64_t> known_;
};

// How often memory was copied so far, for tests: each copy is a system call. Thread: any.
std::uint64_t count_copies() noexcept;

}  // namespace troupe::actor
