// wait_cycles: which actors wait for each other, by the strongly connected sets of the graph of
// asks (Tarjan's algorithm).
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace troupe::observing {

class wait_cycles {
 public:
  static constexpr std::size_t none = SIZE_MAX;

  // The actor `asker` waits for an answer of `asked`. Throws std::bad_alloc, as do the others.
  void add(std::uint64_t asker, std::uint64_t asked);
  // Called once, when all asks have been added.
  void search();
  // The number of the cycle to which this ask belongs; none if it is in no cycle.
  std::size_t cycle_of(std::uint64_t asker, std::uint64_t asked) const;

 private:
  struct node {
    std::vector<std::size_t> asked{};
    bool asks_itself = false;
    std::size_t number = none, low = none, next = 0;  // `next`: of `asked`, the next to visit
    std::size_t set = none;
  };
  std::size_t place_of(std::uint64_t actor);
  void visit_from(std::size_t root);
  void leave(std::size_t at);

  std::unordered_map<std::uint64_t, std::size_t> places_;
  std::vector<node> nodes_;
  std::vector<std::size_t> stack_, path_;
  std::vector<std::size_t> sizes_;  // of the sets
  std::size_t visited_ = 0;
};

}  // namespace troupe::observing
