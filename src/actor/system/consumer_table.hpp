// consumer_table: requests to take an actor's object out of it, at most one for each actor.
//
// A request is a message of the runtime's own. As long as other mail waits, the request goes behind
// it again. When only suspended calls (of a reentrant actor) or guarded messages are left, the
// actor keeps the request outside of its mailbox until those are done.
#pragma once

#include <atomic>

#include "actor/system/cell_table.hpp"
#include "troupe/actor/consume.hpp"

namespace troupe::actor {

// One for each runtime. Used in the turns of the actor only, by its owner.
class consumer_table {
 public:
  // Makes `mine` the actor's request, and returns null; or returns another request that is there
  // already.
  consume_request* begin(cell& actor, consume_request& mine) noexcept;
  void end(cell& actor, consume_request& mine) noexcept;
  // Returns the request that waits outside of the mailbox, or null, and marks it as not
  // waiting there.
  consume_request* call_in(cell& actor) noexcept;

 private:
  cell_table<consume_request> table_;
  // order: relaxed  an actor's own turns see their writes
  std::atomic<bool> in_use_{false};
};

}  // namespace troupe::actor
