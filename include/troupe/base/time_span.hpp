// time_span: how long something may take; the type of each such parameter and option.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>
#include <utility>

namespace troupe {

// A span of time, in nanoseconds: made of a span of any unit, of integers or of floating numbers. A
// span that nanoseconds cannot hold, beyond 292 years, becomes the largest or the smallest one;
// std::chrono's own conversion would wrap, and a limit of hours::max() be over at once. As a limit,
// time_span::max() means none. A part of a nanosecond counts as a whole one, so that no wait ends
// early; NaN is 0. Thread: as any value. Cost: a comparison and a multiplication.
//
// Example:
//     const troupe::time_span limit = std::chrono::hours::max();
//     std::cout << (limit == troupe::time_span::max()) << '\n';  // 1
//     const troupe::time_span half = std::chrono::duration<double>(0.5);
//     std::cout << half.count() << '\n';  // 500000000
class time_span : public std::chrono::nanoseconds {
  template <class Count, class Unit>
  static constexpr rep saturated(const std::chrono::duration<Count, Unit>& span) noexcept {
    using in_nanoseconds = std::ratio_divide<Unit, std::nano>;
    constexpr rep most = std::numeric_limits<rep>::max(), least = std::numeric_limits<rep>::min();
    if constexpr (std::is_floating_point_v<Count>) {
      const auto wanted =
          static_cast<long double>(span.count()) * in_nanoseconds::num / in_nanoseconds::den;
      if (wanted != wanted) return 0;
      if (wanted >= 0x1p63L) return most;
      if (wanted <= -0x1p63L) return least;
      const auto whole = static_cast<rep>(wanted);
      return static_cast<long double>(whole) < wanted ? whole + 1 : whole;
    } else {
      constexpr rep unit = in_nanoseconds::num, parts = in_nanoseconds::den;
      if (std::cmp_greater(span.count(), most)) return most;
      const auto given = static_cast<rep>(span.count());
      const rep whole = given / parts, rest = given % parts;
      if (whole > most / unit) return most;
      if (whole < least / unit) return least;
      const rep rounded = (rest * unit) / parts + (rest > 0 && (rest * unit) % parts != 0 ? 1 : 0);
      const rep sum = whole * unit;
      return sum > most - rounded ? most : sum + rounded;
    }
  }

 public:
  constexpr time_span() noexcept : duration(0) {}
  template <class Count, class Unit>
  requires std::is_arithmetic_v<Count>
  constexpr time_span(const std::chrono::duration<Count, Unit>& span) noexcept
      : duration(saturated(span)) {}
  static constexpr time_span max() noexcept { return duration::max(); }

  // The time when the span has passed after `begin`; the largest time for one too far away, and
  // `begin` for a span below 0.
  constexpr duration after(duration begin) const noexcept {
    if (count() <= 0) return begin;
    const bool fits = begin.count() <= 0 || *this <= duration::max() - begin;
    return fits ? begin + *this : duration::max();
  }
};

// A point of time by the system's clock, of which the same holds: one that nanoseconds since 1970
// cannot hold, as sys_seconds::max() or a day of the year 9999, becomes the latest or the earliest
// point. Thread: as any value.
//
// Example:
//     const troupe::wall_time far = std::chrono::sys_seconds::max();
//     std::cout << (far > std::chrono::system_clock::now()) << '\n';  // 1
class wall_time : public std::chrono::sys_time<std::chrono::nanoseconds> {
 public:
  constexpr wall_time() noexcept = default;
  constexpr explicit wall_time(time_span since_1970) noexcept : time_point(since_1970) {}
  template <class Span>
  constexpr wall_time(const std::chrono::sys_time<Span>& point) noexcept
      : time_point(time_span(point.time_since_epoch())) {}
};

}  // namespace troupe
