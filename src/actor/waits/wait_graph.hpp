// wait_graph: a graph of the waits at one instant, and of its nodes that wait endlessly.
//
// A node is a call, one of the tasks that a call runs side by side, or a blocked thread. Most nodes
// wait for one other node. A node that waits for a group resumes when all of the group have ended,
// or when the first has. A node that waits for something that is no node (a time, I/O, an actor
// that runs) can resume by itself. A node is stuck when no order of events lets it resume: a group
// that waits for all is stuck when one of its members is, a group that waits for the first when all
// of its members are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::actor {

struct wait_node {
  enum class waits : std::uint8_t { for_none, for_one, for_all, for_first };
  static constexpr std::uint32_t none = UINT32_MAX;
  waits how = waits::for_none;
  // for_one: the node that it waits for; a group: the first of its members, which lie side by side
  std::uint32_t target = none;
  std::uint32_t members = 0;  // how many members a group has
};

// Which nodes are stuck; empty when no node waits for another node. Time and memory: linear.
std::vector<bool> find_stuck(std::span<const wait_node> nodes);

// Cycles of stuck nodes, in each of which every node needs the next one. No two cycles have a
// node in common; connected stuck nodes give one cycle. The search starts from the nodes in
// `order`, one after the other.
std::vector<std::vector<std::uint32_t>> find_cycles(std::span<const wait_node> nodes,
                                                    const std::vector<bool>& stuck,
                                                    std::span<const std::uint32_t> order);

}  // namespace troupe::actor
