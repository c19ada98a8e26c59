// counts: one thread's statistics for one runtime, written without a locked instruction.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "troupe/base/platform.hpp"

namespace troupe::tasks {

enum class counted : std::uint8_t {
  messages,   // handled
  spawned,    // actors, including spawned tasks
  ended,      // actors that have ended
  suspended,  // turns suspended now: those that began here less those that ended here
  lazies,     // run
  // links followed from an ask to its askers, in search of a cycle
  // (src/actor/turn/async_calls.cpp)
  hops,
  // (src/actor/turn/async_calls.cpp)
};
inline constexpr std::size_t counted_kinds = 6;

class counts {
 public:
  // order: relaxed  a statistic
  std::int64_t operator[](counted counter) const noexcept {
    return at(counter).load(std::memory_order_relaxed);
  }
  // By the thread that owns these counts.
  TROUPE_INLINE void add(counted counter, std::int64_t n) noexcept {
    // order: relaxed (both)  a statistic; no other thread writes
    at(counter).store(at(counter).load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  // By any thread.
  // order: relaxed  a statistic
  void add_shared(counted counter, std::int64_t n) noexcept {
    at(counter).fetch_add(n, std::memory_order_relaxed);
  }
  // Moves the numbers to `other`, which several threads write; drops them when that is null.
  void move_to(counts* other) noexcept {
    for (std::size_t i = 0; i < counted_kinds; ++i) {
      // order: relaxed  a statistic
      const std::int64_t n = all_[i].exchange(0, std::memory_order_relaxed);
      if (other != nullptr) other->add_shared(static_cast<counted>(i), n);
    }
  }

 private:
  std::atomic<std::int64_t>& at(counted counter) noexcept {
    return all_[static_cast<std::size_t>(counter)];
  }
  const std::atomic<std::int64_t>& at(counted counter) const noexcept {
    return all_[static_cast<std::size_t>(counter)];
  }
  std::array<std::atomic<std::int64_t>, counted_kinds> all_{};
};

}  // namespace troupe::tasks
