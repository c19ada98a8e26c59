// select: waits for whichever of several sends and receives can be done first, and does that one.
#pragma once

#include "troupe/base/language.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "troupe/sync/channels/channel_state.hpp"
#include "troupe/sync/channels/select_parts.hpp"
#include "troupe/sync/waiting.hpp"
#include "troupe/task/when.hpp"

namespace troupe {
namespace sync {

template <class Operation>
select_case<> case_of(Operation& operation) noexcept {
  operation.prepare();
  return {&operation.on(), &operation, &Operation::do_inside, Operation::side, 0};
}

// Access to the operation in an awaitable.
struct awaiting_access {
  template <class Operation>
  static Operation& operation(awaiting<Operation>& awaited) noexcept {
    return awaited;
  }
};

template <class T>
using case_value = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <class... Operations>
class selecting : public select_base<> {
 public:
  using value = std::variant<case_value<decltype(std::declval<Operations&>().finish())>...>;

  explicit selecting(Operations&&... cases) : operations_(std::move(cases)...) {}
  selecting(selecting&&) noexcept = default;

  template <class Prepare>
  bool start(const Prepare& prepare) noexcept {
    fill();
    return select_base<>::start(cases_, prepare);
  }
  bool try_now() noexcept {
    fill();
    return select_base<>::try_now(cases_);
  }
  bool put_back() noexcept {
    const std::uint32_t winner = leave();
    std::uint32_t index = 0;
    return std::apply(
        [&](Operations&... each) { return ((index++ == winner && each.put_back()) || ...); },
        operations_);
  }
  value finish() { return finish_of<0>(leave()); }

  static constexpr bool sends = ((Operations::side == channel_side::senders) || ...);
  static constexpr bool receives = ((Operations::side == channel_side::receivers) || ...);
  bool pause() noexcept requires(sends) { return select_base<>::pause(); }
  void resume() noexcept requires(sends) { select_base<>::resume(); }

 private:
  void fill() noexcept {
    std::apply([this](Operations&... each) { cases_ = {case_of(each)...}; }, operations_);
  }
  template <std::size_t Index>
  value finish_of(std::uint32_t winner) {
    if constexpr (Index + 1 < sizeof...(Operations)) {
      if (winner != Index) return finish_of<Index + 1>(winner);
    }
    auto& won = std::get<Index>(operations_);
    if constexpr (std::is_void_v<decltype(won.finish())>) {
      won.finish();
      return value(std::in_place_index<Index>);
    } else {
      return value(std::in_place_index<Index>, won.finish());
    }
  }

  std::tuple<Operations...> operations_;
  std::array<select_case<>, sizeof...(Operations)> cases_;
};

// The same for cases of one type, of which there are as many as a vector holds.
template <class Operation>
class selecting_each : public select_base<> {
  using result = decltype(std::declval<Operation&>().finish());

 public:
  using value = std::pair<std::size_t, case_value<result>>;

  explicit selecting_each(std::vector<awaiting<Operation>>&& cases)
      : operations_(std::move(cases)), cases_(operations_.size()) {}
  selecting_each(selecting_each&&) noexcept = default;

  template <class Prepare>
  bool start(const Prepare& prepare) noexcept {
    fill();
    return select_base<>::start(cases_, prepare);
  }
  bool try_now() noexcept {
    fill();
    return select_base<>::try_now(cases_);
  }
  bool put_back() noexcept { return awaiting_access::operation(operations_[leave()]).put_back(); }
  static constexpr bool sends = Operation::side == channel_side::senders;
  static constexpr bool receives = !sends;
  bool pause() noexcept requires(sends) { return select_base<>::pause(); }
  void resume() noexcept requires(sends) { select_base<>::resume(); }
  value finish() {
    const std::uint32_t winner = leave();
    Operation& won = awaiting_access::operation(operations_[winner]);
    if constexpr (std::is_void_v<result>) {
      won.finish();
      return {winner, {}};
    } else {
      return {winner, won.finish()};
    }
  }

 private:
  void fill() noexcept {
    for (std::size_t i = 0; i < operations_.size(); ++i)
      cases_[i] = case_of(awaiting_access::operation(operations_[i]));
  }

  std::vector<awaiting<Operation>> operations_;
  std::vector<select_case<>> cases_;
};

template <class Operation>
concept is_selectable = requires(Operation operation) {
  { operation.on() } -> std::convertible_to<channel_base<>&>;
  Operation::side;
};

void check_cases(std::size_t count);

}  // namespace sync

// Waits for the first of several sends and receives that can be done, does it, and leaves the
// others as if they had never been: no value is lost or sent twice. The result is a variant; its
// index is the number of the case that happened, and it holds the result of that case's co_await (a
// std::monostate for a send). A receive from a channel that is closed and empty can be done at
// once, and gives an empty optional: leave out a channel that has ended.
//
// Among cases that can be done, one is chosen as if by chance, so that none is neglected. co_await
// it, optionally with timeout() or stop(), or block in get() on a plain thread.
//
// Thread: any. Cost: about 20 ns if one of two can be done at once; otherwise some 30 ns for each
// case. Errors: as the case that happens: channel_closed of a send. Lifetime: as of the cases: a
// value that is to be moved must live until the wait is over.
//
// Example:
//     troupe::task<> serve(troupe::channel<std::string> orders, troupe::channel<int> ticks) {
//       for (int i = 0; i < 2; ++i) {
//         const auto got = co_await troupe::select(orders.receive(), ticks.receive());
//         if (got.index() == 0) std::cout << "order " << *std::get<0>(got) << '\n';
//         if (got.index() == 1) std::cout << "tick " << *std::get<1>(got) << '\n';
//       }
//     }
//     int main() {
//       troupe::runtime rt;
//       const auto orders = troupe::channel<std::string>::bounded(4);
//       const auto ticks = troupe::channel<int>::bounded(1);
//       orders.try_send("tea");
//       ticks.try_send(1);
//       rt.spawn(serve(orders, ticks));
//       rt.run();
//     }
template <sync::is_selectable... Operations>
requires(sizeof...(Operations) > 0) sync::awaiting<sync::selecting<Operations...>> select(
    sync::awaiting<Operations>&&... cases) {
  return sync::awaiting<sync::selecting<Operations...>>(
      std::in_place, std::move(sync::awaiting_access::operation(cases))...);
}

// The same for any number of cases of one type. The result is the index of the case that happened,
// and its value. Throws usage_error if there is none.
template <sync::is_selectable Operation>
sync::awaiting<sync::selecting_each<Operation>> select(
    std::vector<sync::awaiting<Operation>> cases) {
  sync::check_cases(cases.size());
  return sync::awaiting<sync::selecting_each<Operation>>(std::in_place, std::move(cases));
}

// Does one of the cases if one can be done at once; otherwise returns nothing. Thread: any; it does
// not wait.
template <sync::is_selectable... Operations>
requires(sizeof...(Operations) > 0) auto try_select(sync::awaiting<Operations>&&... cases) {
  sync::selecting<Operations...> all(std::move(sync::awaiting_access::operation(cases))...);
  std::optional<typename sync::selecting<Operations...>::value> done;
  if (all.try_now()) done.emplace(all.finish());
  return done;
}
template <sync::is_selectable Operation>
auto try_select(std::vector<sync::awaiting<Operation>> cases) {
  sync::check_cases(cases.size());
  sync::selecting_each<Operation> all(std::move(cases));
  std::optional<typename sync::selecting_each<Operation>::value> done;
  if (all.try_now()) done.emplace(all.finish());
  return done;
}

namespace tasks {

// when_any of sends and receives alone is a select().
template <sync::is_selectable... Operations>
struct joint_wait<sync::awaiting<Operations>...> {
  using awaited = sync::awaiting<sync::selecting<Operations...>>;
  static awaited make(sync::awaiting<Operations>&&... cases) {
    return troupe::select(std::move(cases)...);
  }
};
template <sync::is_selectable Operation>
struct joint_wait<std::vector<sync::awaiting<Operation>>> {
  using awaited = sync::awaiting<sync::selecting_each<Operation>>;
  static awaited make(std::vector<sync::awaiting<Operation>>&& cases) {
    return troupe::select(std::move(cases));
  }
};

}  // namespace tasks

}  // namespace troupe
