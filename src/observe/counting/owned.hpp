// owned: changes of numbers that only the calling thread writes, and others read. Where the
// processor can, each is one instruction that is not locked, of which compilers make three.
#pragma once

#include <atomic>
#include <cstdint>

#include "troupe/base/platform.hpp"

namespace troupe::observe {

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)

// True: it is 0 now.
TROUPE_INLINE bool subtract_one(std::atomic<std::uint32_t>& own) noexcept {
  bool zero;
  asm volatile("subl $1, %0" : "+m"(reinterpret_cast<std::uint32_t&>(own)), "=@ccz"(zero));
  return zero;
}
TROUPE_INLINE void add_one(std::atomic<std::uint32_t>& own) noexcept {
  asm volatile("addl $1, %0" : "+m"(reinterpret_cast<std::uint32_t&>(own)));
}

#else

TROUPE_INLINE bool subtract_one(std::atomic<std::uint32_t>& own) noexcept {
  // order: relaxed (both)  no other thread writes
  const std::uint32_t left = own.load(std::memory_order_relaxed) - 1;
  own.store(left, std::memory_order_relaxed);
  return left == 0;
}
TROUPE_INLINE void add_one(std::atomic<std::uint32_t>& own) noexcept {
  // order: relaxed (both)  as above
  own.store(own.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

#endif

}  // namespace troupe::observe
