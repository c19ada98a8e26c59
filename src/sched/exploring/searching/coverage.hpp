// coverage: which handlers of an actor have run directly one after the other in the executions of a
// search, and whether in both orders. It is no measure of correctness.
// Thread: any, one at a time.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "sched/exploring/schedule.hpp"

namespace troupe::sched::exploring {

class coverage {
 public:
  void add(const execution& seen) { orders_.insert(seen.orders.begin(), seen.orders.end()); }
  // Pairs of different handlers of one actor that ran in one order at least.
  std::size_t pairs() const { return orders_.size() - in_both_orders(); }
  std::size_t in_both_orders() const;
  // The other pairs, a line each: "Stock::read before Stock::write".
  std::string in_one_order() const;

 private:
  bool is_reversed(const handler_order& order) const {
    return orders_.contains({order.second, order.first});
  }
  std::set<handler_order> orders_;
};

// "5 of 7 pairs of handlers of an actor ran in both orders".
std::string text_of_pairs(std::size_t in_both_orders, std::size_t all);

}  // namespace troupe::sched::exploring
