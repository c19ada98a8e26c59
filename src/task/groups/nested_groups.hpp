// nested_groups: how a group starts and cancels its branches, of which some may be groups again.
#pragma once

#include <utility>

#include "troupe/task/when.hpp"

namespace troupe::tasks {

// Groups nest, and so would these calls: a group in a branch of a group calls `act` inside the
// outer group's `act`. At depth_max the inner group is put into a list instead, and the outermost
// call acts on it.
template <class Act>
void group::nest(group_nest* group::*at, Act act) noexcept {
  group* const outer = around(*waiter->call);
  group_nest own;
  group_nest& within = outer == nullptr || outer->*at == nullptr ? own : *(outer->*at);
  if (within.depth == group_nest::depth_max) {
    if (lists_.has(list::later)) return;
    lists_.join(list::later);
    next_later_ = nullptr;
    *std::exchange(within.later_end, &next_later_) = this;
    return;
  }
  group_nest* const before = std::exchange(this->*at, &within);
  ++within.depth;
  act(*this);
  while (group* const later = own.later) {
    own.later = later->next_later_;
    if (own.later == nullptr) own.later_end = &own.later;
    later->lists_.leave(list::later);
    later->*at = &own;
    act(*later);
    later->*at = nullptr;
    later->go_on_if_done();
  }
  --within.depth;
  this->*at = before;
}

}  // namespace troupe::tasks
