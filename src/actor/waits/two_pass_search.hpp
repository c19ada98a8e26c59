// two_pass_search: the steps of a search for cycles of waits: a first pass over everything, a
// second pass if the first one found a cycle, and the refusal. A template, so that
// tests/models/actor/wait_circles.cpp checks this very source (docs/protocols/deadlocks.md).
#pragma once

#include <cstddef>

#include "actor/waits/wait_graph.hpp"

namespace troupe::actor {

// World:
//   Graph collect(bool second)       `nodes` and `calls`; the second look takes only waits that the
//                                 first one saw and that are not over
//   void not_confirmed()          the cycle of the first pass was none
//   size_t refuse(Graph, cycles)  refuses one wait of each cycle, if it is still the same wait and
//                                 is not over; returns how many
template <class World>
std::size_t search_in_two_passes(World& world) {
  {
    const auto first = world.collect(false);
    if (find_cycles(first.nodes, find_stuck(first.nodes), first.calls).empty()) return 0;
  }
  const auto second = world.collect(true);
  const auto cycles = find_cycles(second.nodes, find_stuck(second.nodes), second.calls);
  if (!cycles.empty()) return world.refuse(second, cycles);
  world.not_confirmed();
  return 0;
}

}  // namespace troupe::actor
