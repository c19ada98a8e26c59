// repetition: distinguishes trouble that lasts from a single event, which is not worth a warning.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace troupe::observing {

// Whether something that looks find from time to time was found before within `lasts`, which is
// warning_lasts or more.
class repetition {
 public:
  bool is_again(std::int64_t now_ns, std::chrono::nanoseconds lasts) noexcept {
    const std::int64_t before_ns = last_ns_;
    last_ns_ = now_ns;
    return before_ns != 0 && now_ns - before_ns <= lasts.count();
  }

 private:
  std::int64_t last_ns_ = 0;
};

// By how much a count has risen since the last look, which it notes.
inline std::uint64_t rise_of(std::uint64_t& before, std::uint64_t now) noexcept {
  return now - std::min(now, std::exchange(before, now));
}

// A number that grows: it was never less than before, and grew at most growing_pause_ns ago.
class growing_number {
 public:
  // For how long it has grown; 0 if it does not grow.
  std::int64_t grown_ns(std::uint64_t number, std::int64_t now_ns) noexcept {
    const bool begins = since_ns_ == 0 || number < last_ ||
                        (number == last_ && now_ns - grew_ns_ > growing_pause_ns);
    if (begins) {
      since_ns_ = now_ns;
      first_ = number;
    }
    if (begins || number > last_) grew_ns_ = now_ns;
    last_ = number;
    // by a tenth, so that a large number is not worth a warning as soon as it changes
    return number > first_ + first_ / 10 ? now_ns - since_ns_ : 0;
  }

 private:
  static constexpr std::int64_t growing_pause_ns = 3'000'000'000;
  std::int64_t since_ns_ = 0, grew_ns_ = 0;
  std::uint64_t first_ = 0, last_ = 0;
};

}  // namespace troupe::observing
