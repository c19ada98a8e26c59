// futex: how a thread sleeps until a word in memory changes.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>

namespace troupe::base {

// The kernel's part. wait() compares the word and sleeps in one step, until it is woken, or for at
// most `limit` if that is not null. It may also return for no reason.
struct kernel_futex {
  using word = std::atomic<std::uint32_t>;
  static void wait(word& at, std::uint32_t expected,
                   const std::chrono::nanoseconds* limit) noexcept;
  static void wake_one(word& at) noexcept;
};

}  // namespace troupe::base
