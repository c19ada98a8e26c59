// calendar: how the fields of a calendar are stored: as whole numbers, and several of them as a
// tuple. For the library's own use (codec.hpp).
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstdint>
#include <string_view>
#include <tuple>

namespace troupe::durable::parts {

// `stored` is the written form; `name` is in front of its shape.
template <class T>
struct calendar_form;

template <>
struct calendar_form<std::chrono::day> {
  using stored = std::uint8_t;
  static constexpr std::string_view name = "day ";
  static stored of(std::chrono::day value) {
    return static_cast<stored>(static_cast<unsigned>(value));
  }
  static std::chrono::day from(stored value) { return std::chrono::day(value); }
};
template <>
struct calendar_form<std::chrono::month> {
  using stored = std::uint8_t;
  static constexpr std::string_view name = "month ";
  static stored of(std::chrono::month value) {
    return static_cast<stored>(static_cast<unsigned>(value));
  }
  static std::chrono::month from(stored value) { return std::chrono::month(value); }
};
template <>
struct calendar_form<std::chrono::year> {
  using stored = std::int16_t;
  static constexpr std::string_view name = "year ";
  static stored of(std::chrono::year value) { return static_cast<stored>(static_cast<int>(value)); }
  static std::chrono::year from(stored value) { return std::chrono::year(value); }
};
// Sunday is 0.
template <>
struct calendar_form<std::chrono::weekday> {
  using stored = std::uint8_t;
  static constexpr std::string_view name = "weekday ";
  static stored of(std::chrono::weekday value) { return static_cast<stored>(value.c_encoding()); }
  static std::chrono::weekday from(stored value) { return std::chrono::weekday(value); }
};
template <>
struct calendar_form<std::chrono::month_day> {
  using stored = std::tuple<std::chrono::month, std::chrono::day>;
  static constexpr std::string_view name = "";
  static stored of(std::chrono::month_day value) { return {value.month(), value.day()}; }
  static std::chrono::month_day from(const stored& value) {
    return {std::get<0>(value), std::get<1>(value)};
  }
};
template <>
struct calendar_form<std::chrono::year_month> {
  using stored = std::tuple<std::chrono::year, std::chrono::month>;
  static constexpr std::string_view name = "";
  static stored of(std::chrono::year_month value) { return {value.year(), value.month()}; }
  static std::chrono::year_month from(const stored& value) {
    return {std::get<0>(value), std::get<1>(value)};
  }
};
template <>
struct calendar_form<std::chrono::year_month_day> {
  using stored = std::tuple<std::chrono::year, std::chrono::month, std::chrono::day>;
  static constexpr std::string_view name = "";
  static stored of(std::chrono::year_month_day value) {
    return {value.year(), value.month(), value.day()};
  }
  static std::chrono::year_month_day from(const stored& value) {
    return {std::get<0>(value), std::get<1>(value), std::get<2>(value)};
  }
};

template <class T>
concept calendar_field = requires {
  typename calendar_form<T>::stored;
};

}  // namespace troupe::durable::parts
