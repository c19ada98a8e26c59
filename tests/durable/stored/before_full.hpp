// Classes as the version of the library stored them whose shapes had no more names than it took
// when they were stored: `before_full.db` has them. They never change.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include "troupe/durable/store.hpp"
#include "troupe/troupe.hpp"

namespace grown {

namespace card {
enum class step : std::uint8_t { begun };
struct paid {
  step at;
  std::int8_t tries;
};
}  // namespace card
namespace bank {
enum class step : std::uint8_t { begun, done };
struct paid {
  step at;
  std::int8_t tries;
};
}  // namespace bank
enum class door : std::uint8_t { open, shut };
enum class window : std::uint8_t { open, shut };

template <class First, class Second, class Door, class Window>
struct house_of {
  std::variant<First, Second> payment{};
  std::map<Door, Window> openings;
  void pay(std::int8_t tries) { payment = Second{{}, tries}; }
  void set(Door to, Window beside) { openings[to] = beside; }
  int look() const {
    return 10 * static_cast<int>(payment.index()) +
           static_cast<int>(openings.count(static_cast<Door>(1)));
  }
};
using house = house_of<card::paid, bank::paid, door, window>;

struct added {
  std::int32_t by;
};
struct removed {
  std::int32_t by;
};
template <int Number, class... Events>
struct sum_of {
  static constexpr int schema = Number;
  using event = std::variant<Events...>;
  std::int64_t sum = 0;
  void apply(const event& one) {
    std::visit(
        [this](const auto& change) {
          sum += std::is_same_v<decltype(change), const removed&> ? -change.by : change.by;
        },
        one);
  }
  troupe::durable::changes<event> add(std::int32_t by) const { return {{event(added{by})}}; }
  troupe::durable::changes<event> remove(std::int32_t by) const { return {{event(removed{by})}}; }
  std::int64_t value() const { return sum; }
};
using sum = sum_of<1, added, removed>;

template <class House, class Sum>
troupe::task<troupe::durable::store> open(troupe::runtime& rt,
                                          std::unique_ptr<troupe::durable::storage> storage) {
  return troupe::durable::store::open(
      rt, std::move(storage), troupe::durable::options(),
      troupe::durable::kind<House, &House::pay, &House::set, &House::look>("house"),
      troupe::durable::kind<Sum, &Sum::add, &Sum::remove, &Sum::value>("sum"));
}

}  // namespace grown
