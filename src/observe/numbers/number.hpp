// number: the one declaration of a number. The summary, the text for Prometheus, `troupe top`, the
// page and the tables of the guide are made from it.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe::observe {

enum class number_kind : std::uint8_t { counter, gauge, histogram };
enum class number_unit : std::uint8_t { one, bytes, seconds };
// The trouble that a number shows: a histogram of times by slow values, a counter that rises, and a
// gauge that is not 0. An observed program warns of it.
enum class trouble : std::uint8_t {
  none,
  slow_requests,
  slow_statements,
  pool_exhausted,
  refused_clients,
  exporter_unavailable
};
const char* name_of(number_kind kind) noexcept;
const char* name_of(number_unit unit) noexcept;  // "" for `one`

// A value of a histogram, and the trace in which it was seen.
struct exemplar {
  std::size_t bucket = 0;
  double value = 0;
  std::array<std::uint8_t, 16> trace_id{};
  std::array<std::uint8_t, 8> span_id{};
  std::int64_t unix_ns = 0;
};

// The values of a histogram at one moment.
struct distribution {
  std::span<const double> bounds;     // in rising order; they outlive all distributions
  std::vector<std::uint64_t> counts;  // values at most each bound, not summed up; then the rest
  double sum = 0;
  std::vector<exemplar> exemplars = {};  // at most one of each bucket

  std::uint64_t count() const noexcept;
  // The least bound below which this part of all values lies, from 0 to 1; 0 if there is none, and
  // the greatest bound if the value lies above all.
  double quantile(double part) const noexcept;
};

using number_value = std::variant<std::uint64_t, std::int64_t, double, distribution>;

template <class Number>
requires std::unsigned_integral<Number> number_value value_of(Number n) {
  return static_cast<std::uint64_t>(n);
}
template <class Number>
requires std::signed_integral<Number> number_value value_of(Number n) {
  return static_cast<std::int64_t>(n);
}
inline number_value value_of(double n) { return n; }
inline number_value value_of(std::chrono::nanoseconds span) {
  return std::chrono::duration<double>(span).count();
}
inline number_value value_of(const distribution& values) { return values; }

struct number {
  std::string_view name;    // ends in the unit: "kept_bytes"
  std::string_view member;  // its name in the summary
  number_kind kind = number_kind::counter;
  number_unit unit = number_unit::one;
  std::string_view help;  // one sentence
  number_value (*read)(const void* values) = nullptr;
  trouble shows = trouble::none;
};

// A number that is a member of `Values`, or that a function computes from them.
template <class Values>
struct number_of : number {};

template <class Member>
struct member_traits;
template <class Of, class Value>
struct member_traits<Value Of::*> {
  using owner = Of;
};
template <class Of, class Value>
struct member_traits<Value (*)(const Of&)> {
  using owner = Of;
};

template <auto Member, class Of = typename member_traits<decltype(Member)>::owner>
constexpr number_of<Of> declare(std::string_view name, number_kind kind, number_unit unit,
                                std::string_view help) {
  return {{name, name, kind, unit, help, [](const void* values) {
             return value_of(std::invoke(Member, *static_cast<const Of*>(values)));
           }}};
}
template <class Values>
constexpr number_of<Values> shows(trouble shown, number_of<Values> declared) {
  declared.shows = shown;
  return declared;
}
// The same with another name in the summary.
template <class Values>
constexpr number_of<Values> in_summary(std::string_view member, number_of<Values> declared) {
  declared.member = member;
  return declared;
}
// A sum that never falls.
template <auto Member>
constexpr auto counter_of(std::string_view name, std::string_view help,
                          number_unit unit = number_unit::one) {
  return declare<Member>(name, number_kind::counter, unit, help);
}
// A state that rises and falls.
template <auto Member>
constexpr auto gauge_of(std::string_view name, std::string_view help,
                        number_unit unit = number_unit::one) {
  return declare<Member>(name, number_kind::gauge, unit, help);
}
template <auto Member>
constexpr auto histogram_of(std::string_view name, std::string_view help,
                            number_unit unit = number_unit::seconds) {
  return declare<Member>(name, number_kind::histogram, unit, help);
}

// The numbers of one kind of thing: a static object beside the code that counts. It enters the list
// of all groups of the process by its constructor, and must live as long as the process.
class number_group {
 public:
  static constexpr std::size_t numbers_max = 32, labels_max = 5;

  number_group(const number_group&) = delete;
  number_group& operator=(const number_group&) = delete;

  // The beginning of the names of its metrics: "troupe_cluster".
  std::string_view prefix() const noexcept { return prefix_; }
  std::span<const std::string_view> labels() const noexcept { return {labels_.data(), labelled_}; }
  std::span<const number> numbers() const noexcept { return {numbers_.data(), size_}; }
  // The name for Prometheus: "troupe_cluster_sent_messages_total".
  std::string metric(const number& described) const;

  // In no order.
  template <class Look>
  static void for_each(Look look) {
    for (const number_group* group = first(); group != nullptr; group = group->next_) look(*group);
  }

 protected:
  number_group(std::string_view prefix, std::initializer_list<std::string_view> labels) noexcept;
  void add(const number& added) noexcept { numbers_[size_++] = added; }

 private:
  static const number_group* first() noexcept;

  std::string_view prefix_;
  std::array<std::string_view, labels_max> labels_;
  std::size_t labelled_ = 0, size_ = 0;
  std::array<number, numbers_max> numbers_;
  const number_group* next_;
};

// A group whose numbers are members of `Values`.
template <class Values>
class number_table : public number_group {
 public:
  template <std::size_t Size>
  number_table(std::string_view prefix, std::initializer_list<std::string_view> labels,
               const number_of<Values> (&numbers)[Size]) noexcept
      : number_group(prefix, labels) {
    static_assert(Size <= numbers_max);
    for (const number& added : numbers) add(added);
  }
};

}  // namespace troupe::observe
