// wait_graph: who waits for whom, at one instant, and which of them wait for ever.
//
// A node is a call, one of the tasks that it runs side by side, or a thread that is blocked. Most
// wait for one other node. One that waits for a group goes on when all of the group have ended, or
// when the first has. A node goes on by itself when it waits for what is no node: a time, I/O, an
// actor that runs. A node is stuck when no order of events lets it go on: a group of all when one
// of its members is stuck, a group of which the first is enough when all of them are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::actor {

struct wait_node {
  enum class waits : std::uint8_t { for_nobody, for_one, for_all, for_first };
  static constexpr std::uint32_t none = UINT32_MAX;
  waits how = waits::for_nobody;
  // of for_one; of a group the first of its members, which lie side by side
  std::uint32_t target = none;
  std::uint32_t members = 0;  // of a group
};

// Which of them are stuck; empty when none waits for another one. Time and memory: linear.
std::vector<bool> find_stuck(std::span<const wait_node> nodes);

// Circles of stuck nodes that have no node in common, one for each set of stuck nodes that are
// connected: each node of a circle needs the next one. Looked for from the nodes in `order`, one
// after the other.
std::vector<std::vector<std::uint32_t>> find_circles(std::span<const wait_node> nodes,
                                                     const std::vector<bool>& stuck,
                                                     std::span<const std::uint32_t> order);

}  // namespace troupe::actor
