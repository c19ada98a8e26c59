// sample_stride: how many things one sample represents. Where things come fast it grows, so that a
// sample is taken about every 50 to 400 us, however many there are; where they come seldom, each is
// a sample.
#pragma once

#include <algorithm>
#include <cstdint>

namespace troupe::observe {

// Thread: its owner's.
class sample_stride {
 public:
  static constexpr std::uint64_t most = 4096;

  // Always a power of two.
  std::uint64_t get() const noexcept { return std::uint64_t{mask_} + 1; }
  // Whether the thing with this number, counted from 0 on, is a sample.
  bool samples(std::uint64_t number) const noexcept { return (number & mask_) == 0; }
  // A sample was taken at this time.
  void taken(std::uint64_t ticks) noexcept {
    const std::uint64_t since = ticks - last_ticks_;
    last_ticks_ = ticks;
    if (since < soon) {
      mask_ = std::min(mask_ * 2 + 1, std::uint32_t{most - 1});
    } else if (since > late) {
      mask_ /= 2;
    }
  }

 private:
  static constexpr std::uint64_t soon = 1 << 17, late = 1 << 20;  // ticks
  std::uint64_t last_ticks_ = 0;
  std::uint32_t mask_ = 0;
};

}  // namespace troupe::observe
