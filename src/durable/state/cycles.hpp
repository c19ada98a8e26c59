// cycles: asks that wait for themselves.
//
// Within a node such an ask is refused when it is made. No node sees a cycle over several nodes as
// a whole: a node that has asked others looks now and then for asks that wait behind a handler, and
// asks the nodes for which that handler waits whether the chain of handlers leads back to the ask.
// No handler of such a cycle can continue, and an answer therefore stays true until the last node
// has given its own.
//
// Lock: the engine's mutex is held in each function.
//
// Invariants
//   C1  No handler waits, over actors of this node, for an ask that its own actor has to handle.
//   C2  One task looks for cycles over nodes, as long as an answer of another node is missing.
#pragma once

#include <vector>

#include "durable/memory/actor_in_memory.hpp"
#include "durable/memory/classes.hpp"
#include "durable/memory/shard_scope.hpp"
#include "durable/state/actors.hpp"
#include "durable/state/known_messages.hpp"

namespace troupe::durable::parts {

struct cycle_steps {
  bool is_found = false;
  std::vector<cycle_question> elsewhere;
};

class cycles {
 public:
  cycles(const classes& classes, const actors& actors, const known_messages& known) noexcept
      : classes_(classes), actors_(actors), known_(known) {}
  cycles(const cycles&) = delete;
  cycles& operator=(const cycles&) = delete;

  // The handler of `asker` is about to wait for `asked`. Throws deadlock (C1).
  static void check(const activation& asker, const activation& asked);

  // The task that looks for cycles (C2). Returns false if it is at work already.
  bool begin_looks() noexcept { return !std::exchange(looks_, true); }
  void end_looks() noexcept;
  // The asks that wait behind handlers. Returns false if no answer of another node is missing: then
  // the task ends.
  bool find_waiting_asks(std::vector<cycle_question>& waiting);
  // The asks over which the one in question waits here.
  cycle_steps follow(const cycle_question& question) const;
  // Null: it is not in memory.
  activation* find_actor(const actor_name& name) const;

 private:
  void follow_handler(const activation& actor, const cycle_question& question,
                      std::vector<const activation*>& seen, cycle_steps& steps) const;

  const classes& classes_;
  const actors& actors_;
  const known_messages& known_;
  bool looks_ = false;
};

}  // namespace troupe::durable::parts
