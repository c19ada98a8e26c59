// Classes whose shapes an earlier version of the library did not tell apart from others, as it
// stored them: `before_exact.db` has them. They never change.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "troupe/durable/store.hpp"
#include "troupe/troupe.hpp"

namespace unclear {

namespace card {
struct paid {
  std::int64_t cents;
};
}  // namespace card
namespace bank {
struct paid {
  std::int64_t cents;
};
}  // namespace bank
enum class status : std::uint16_t { ok = 200, gone = 410, broken = 500 };
enum class status_moved : std::uint16_t { ok = 200, broken = 410, gone = 500 };

template <class Status, class First, class Second>
struct bill_of {
  std::variant<First, Second> payment{};
  Status answer = Status::ok;
  void pay(std::int64_t cents) {
    payment = Second{cents};
    answer = Status::broken;
  }
  // Kept for a message with the arguments themselves.
  void take(std::variant<First, Second> by, Status to) {
    payment = by;
    answer = to;
  }
  int look() const { return 1'000 * static_cast<int>(payment.index()) + static_cast<int>(answer); }
};
using bill = bill_of<status, card::paid, bank::paid>;

template <class Bill>
troupe::task<troupe::durable::store> open(troupe::runtime& rt,
                                          std::unique_ptr<troupe::durable::storage> storage) {
  return troupe::durable::store::open(
      rt, std::move(storage), troupe::durable::options(),
      troupe::durable::kind<Bill, &Bill::pay, &Bill::take, &Bill::look>("bill"));
}

}  // namespace unclear
