#include "runtime/observing/warnings/wait_cycles.hpp"

#include <algorithm>

namespace troupe::observing {

std::size_t wait_cycles::place_of(std::uint64_t actor) {
  const auto [found, is_new] = places_.try_emplace(actor, nodes_.size());
  if (is_new) nodes_.emplace_back();
  return found->second;
}

void wait_cycles::add(std::uint64_t asker, std::uint64_t asked) {
  const std::size_t from = place_of(asker), to = place_of(asked);
  if (from == to) nodes_[from].asks_itself = true;
  std::vector<std::size_t>& all = nodes_[from].asked;
  if (std::ranges::find(all, to) == all.end()) all.push_back(to);
}

void wait_cycles::search() {
  for (std::size_t root = 0; root < nodes_.size(); ++root) {
    if (nodes_[root].number == none) visit_from(root);
  }
}

// Without recursion: a chain of asks may be long.
void wait_cycles::visit_from(std::size_t root) {
  path_.assign(1, root);
  while (!path_.empty()) {
    const std::size_t at = path_.back();
    node& asker_node = nodes_[at];
    if (asker_node.number == none) {
      asker_node.number = asker_node.low = visited_++;
      stack_.push_back(at);
    }
    if (asker_node.next == asker_node.asked.size()) {
      leave(at);
      continue;
    }
    const std::size_t target = asker_node.asked[asker_node.next++];
    if (nodes_[target].number == none) {
      path_.push_back(target);
    } else if (nodes_[target].set == none) {  // on the stack
      asker_node.low = std::min(asker_node.low, nodes_[target].number);
    }
  }
}

void wait_cycles::leave(std::size_t at) {
  path_.pop_back();
  const node& asker_node = nodes_[at];
  if (!path_.empty()) nodes_[path_.back()].low = std::min(nodes_[path_.back()].low, asker_node.low);
  if (asker_node.low != asker_node.number) return;
  const auto begin = std::ranges::find(stack_, at);
  for (auto member = begin; member != stack_.end(); ++member) nodes_[*member].set = sizes_.size();
  sizes_.push_back(static_cast<std::size_t>(stack_.end() - begin));
  stack_.erase(begin, stack_.end());
}

std::size_t wait_cycles::cycle_of(std::uint64_t asker, std::uint64_t asked) const {
  const auto asker_place = places_.find(asker), asked_place = places_.find(asked);
  if (asker_place == places_.end() || asked_place == places_.end()) return none;
  const node& asker_node = nodes_[asker_place->second];
  if (asker_node.set != nodes_[asked_place->second].set) return none;
  const bool is_cycle =
      sizes_[asker_node.set] > 1 || (asker_place == asked_place && asker_node.asks_itself);
  return is_cycle ? asker_node.set : none;
}

}  // namespace troupe::observing
