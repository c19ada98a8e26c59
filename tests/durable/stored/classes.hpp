// The classes of the stores that are kept here, as an earlier version of the library stored them.
// They never change: a further store has classes of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "troupe/durable/store.hpp"
#include "troupe/troupe.hpp"

namespace kept {

enum class colour : std::uint8_t { red, green, blue };
struct started {};
struct stopped {};

struct account {
  std::int64_t cents = 0;
  colour painted = colour::red;
  std::variant<started, stopped> state{};
  std::vector<std::string> lines;

  std::int64_t deposit(std::int64_t amount) { return cents += amount; }
  std::int64_t withdraw(std::int64_t amount) {
    if (amount > cents) throw std::runtime_error("not enough money");
    return cents -= amount;
  }
  void paint(colour to) {
    painted = to;
    state = stopped();
  }
  int look() const { return 10 * static_cast<int>(state.index()) + static_cast<int>(painted); }
  void refuse() { throw std::runtime_error("poison"); }
  void remind(troupe::durable::turn& turn) {
    const auto far = std::chrono::system_clock::time_point(std::chrono::hours(24 * 365 * 100));
    turn.remind_at<&account::paint>("far", far, colour::blue);
    turn.remind_every<&account::deposit>("often", std::chrono::hours(24), 1);
  }
};

// Its message stays in the inbox until `ends`.
struct holder {
  int held = 0;
  static inline bool ends = false;
  troupe::task<int> hold(int by) {
    if (!ends) co_await troupe::sleep_for(std::chrono::hours(1));
    co_return held += by;
  }
  int count() const { return held; }
};

struct moved {
  int by;
};
struct counter {
  using event = moved;
  static constexpr std::uint64_t events_between_snapshots = 4;
  std::int64_t sum = 0;
  void apply(const moved& one) { sum += one.by; }
  troupe::durable::changes<moved> move(int by) const { return {{{by}}}; }
  std::int64_t value() const { return sum; }
};

inline troupe::task<troupe::durable::store> open(
    troupe::runtime& rt, std::unique_ptr<troupe::durable::storage> storage) {
  troupe::durable::options chosen;
  chosen.failures_max = 1;
  // A store that is kept has ids of the day when it was written.
  chosen.remember = std::chrono::hours(24 * 365 * 100);
  return troupe::durable::store::open(
      rt, std::move(storage), chosen,
      troupe::durable::kind<account, &account::deposit, &account::withdraw, &account::paint,
                            &account::look, &account::refuse, &account::remind>(),
      troupe::durable::kind<holder, &holder::hold, &holder::count>(),
      troupe::durable::kind<counter, &counter::move, &counter::value>());
}

}  // namespace kept
