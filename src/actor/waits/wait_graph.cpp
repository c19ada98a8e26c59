#include "actor/waits/wait_graph.hpp"

#include <algorithm>

namespace troupe::actor {
namespace {

using waits = wait_node::waits;

std::uint32_t needs(const wait_node& node) noexcept {
  return node.how == waits::for_none ? 0 : node.how == waits::for_one ? 1 : node.members;
}

// For each node, which nodes need it; all lists lie in one array.
class reverse_edges {
 public:
  explicit reverse_edges(std::span<const wait_node> nodes) : begin_(nodes.size() + 1) {
    for_each(nodes, [this](std::uint32_t, std::uint32_t to) { ++begin_[to + 1]; });
    for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
    from_.resize(begin_.back());
    std::vector<std::uint32_t> filled(begin_.begin(), begin_.end() - 1);
    for_each(nodes, [&](std::uint32_t from, std::uint32_t to) { from_[filled[to]++] = from; });
  }
  std::span<const std::uint32_t> of(std::uint32_t node) const {
    return std::span(from_).subspan(begin_[node], begin_[node + 1] - begin_[node]);
  }

 private:
  template <class Look>
  static void for_each(std::span<const wait_node> nodes, Look look) {
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      for (std::uint32_t n = 0; n < needs(nodes[i]); ++n) look(i, nodes[i].target + n);
    }
  }
  std::vector<std::uint32_t> begin_, from_;
};

// A stuck node's successor: one of the stuck nodes that it needs.
std::uint32_t stuck_for(std::span<const wait_node> nodes, const std::vector<bool>& stuck,
                        std::uint32_t node) {
  std::uint32_t at = nodes[node].target;
  while (!stuck[at]) ++at;
  return at;
}

}  // namespace

// All nodes count as stuck at first, except those that wait for no node. Each node that is freed
// may free the nodes that need it.
std::vector<bool> find_stuck(std::span<const wait_node> nodes) {
  const auto waits_for_a_node = [](const wait_node& node) { return node.how == waits::for_one; };
  if (std::ranges::none_of(nodes, waits_for_a_node)) return {};
  const reverse_edges needed_by(nodes);
  std::vector<bool> stuck(nodes.size(), true);
  std::vector<std::uint32_t> left(nodes.size());  // how many members are not free yet
  std::vector<std::uint32_t> freed;
  const auto free = [&](std::uint32_t node) {
    stuck[node] = false;
    freed.push_back(node);
  };
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    left[i] = nodes[i].how == waits::for_all ? nodes[i].members : 1;
    if (needs(nodes[i]) == 0) free(i);
  }
  while (!freed.empty()) {
    const std::uint32_t node = freed.back();
    freed.pop_back();
    for (const std::uint32_t from : needed_by.of(node)) {
      if (stuck[from] && --left[from] == 0) free(from);
    }
  }
  return stuck;
}

std::vector<std::vector<std::uint32_t>> find_cycles(std::span<const wait_node> nodes,
                                                    const std::vector<bool>& stuck,
                                                    std::span<const std::uint32_t> order) {
  std::vector<std::vector<std::uint32_t>> cycles;
  if (stuck.empty()) return cycles;
  // the start of the walk that reached this node first
  std::vector<std::uint32_t> reached_from(nodes.size(), wait_node::none);
  for (const std::uint32_t start : order) {
    if (!stuck[start]) continue;
    std::uint32_t at = start;
    while (reached_from[at] == wait_node::none) {
      reached_from[at] = start;
      at = stuck_for(nodes, stuck, at);
    }
    if (reached_from[at] != start) continue;  // an earlier walk has been here
    std::vector<std::uint32_t>& cycle = cycles.emplace_back();
    std::uint32_t next = at;
    do {
      cycle.push_back(next);
      next = stuck_for(nodes, stuck, next);
    } while (next != at);
  }
  return cycles;
}

}  // namespace troupe::actor
