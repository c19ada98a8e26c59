#include "sched/exploring/searching/coverage.hpp"

#include <algorithm>

namespace troupe::sched::exploring {

std::size_t coverage::in_both_orders() const {
  const auto reversed = [this](const handler_order& order) { return is_reversed(order); };
  return static_cast<std::size_t>(std::ranges::count_if(orders_, reversed)) / 2;
}

std::string coverage::in_one_order() const {
  std::string lines;
  for (const handler_order& order : orders_) {
    if (!is_reversed(order)) lines += order.first + " before " + order.second + '\n';
  }
  return lines;
}

std::string text_of_pairs(std::size_t in_both_orders, std::size_t all) {
  return std::to_string(in_both_orders) + " of " + std::to_string(all) +
         (all == 1 ? " pair" : " pairs") + " of handlers of an actor ran in both orders";
}

}  // namespace troupe::sched::exploring
