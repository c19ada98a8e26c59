// consumers: who asks for the object of an actor, one for each actor.
//
// The request is a message of the runtime's own, which goes behind the other mail again for as long
// as there is some. An actor that is quiet but for calls that wait (of a reentrant one) or guarded
// messages keeps it outside of the mailbox until those are done.
#pragma once

#include <atomic>

#include "actor/lifetime/cell_table.hpp"
#include "troupe/actor/consume.hpp"

namespace troupe::actor {

// Of one runtime. In the turns of the actor, whose owner alone asks for it.
class consumer_table {
 public:
  // Null, and done; or the one who was there before and has not given up.
  consume_request* begin(cell& actor, consume_request& mine) noexcept;
  void end(cell& actor, consume_request& mine) noexcept;
  // The one who waits outside of the mailbox, if there is one: he does so no more.
  consume_request* call_in(cell& actor) noexcept;

 private:
  cell_table<consume_request> table_;
  // order: relaxed  an actor's own turns see their own
  std::atomic<bool> in_use_{false};
};

// In its turn: the calls or guarded messages for which a consumer may have waited are done.
void call_consumer_in(cell& actor) noexcept;
// The actor has ended otherwise.
void refuse_consumer(cell& actor) noexcept;

}  // namespace troupe::actor
