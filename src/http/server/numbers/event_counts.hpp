// event_counts: how often each event of an enumeration has happened.
// Threads: any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace troupe::http {

// `End`: the last enumerator, which counts the others.
template <class Event, Event End>
class event_counts {
 public:
  void count(Event event) noexcept {
    // order: relaxed  a statistic; publishes nothing
    counts_[static_cast<std::size_t>(event)].fetch_add(1, std::memory_order_relaxed);
  }
  std::uint64_t of(Event event) const noexcept {
    // order: relaxed  a statistic
    return counts_[static_cast<std::size_t>(event)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(End)> counts_{};
};

}  // namespace troupe::http
