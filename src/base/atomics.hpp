// atomics: the one facade over std::atomic.
//
// Concurrent classes take their atomics as a template parameter. The code that ships is thus the
// code that the model checker runs (tests/models/ gives relacy's atomics the same interface).
#pragma once

#include <atomic>
#include <cstdint>

#include "troupe/base/platform.hpp"

namespace troupe::base {

// An asymmetric pair of fences: one light() on the frequent side and one heavy() on the rare side
// order stores before loads on both sides, like two seq_cst fences, where the kernel can fence
// other threads for us (membarrier). Where it cannot, the frequent side needs a full fence. See
// docs/protocols/biased_lock.md.
namespace asymmetric {

// The kernel is asked once, by the first caller: runtimes may be globals.
bool kernel_fences() noexcept;

// order: none  keeps the compiler from moving the load up; heavy() fences this processor
TROUPE_INLINE void light() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

// For places that heavy() may not reach: the same as light() where that is enough, otherwise
// seq_cst.
inline void light_or_full() noexcept {
  // order: seq_cst  store in front of load; pairs with heavy()
  kernel_fences() ? light() : std::atomic_thread_fence(std::memory_order_seq_cst);
}

// Takes about a microsecond: an interrupt to every processor that runs a thread of this process.
// Returns false when the kernel refuses, because the program has forbidden itself the system call
// since it started. Then nothing is ordered.
bool heavy() noexcept;

// How often the kernel has refused heavy() in this process.
std::uint64_t refusals() noexcept;

}  // namespace asymmetric

struct std_atomics {
  template <class T>
  using atomic = std::atomic<T>;

  // Plain data that a protocol guards; a model replaces it by a checked variable.
  template <class T>
  using guarded = T;

  static bool light_fences_suffice() noexcept { return asymmetric::kernel_fences(); }
  static void light_fence() noexcept { asymmetric::light(); }
  static void light_or_full_fence() noexcept { asymmetric::light_or_full(); }
  static bool heavy_fence() noexcept { return asymmetric::heavy(); }
  // order: seq_cst  the caller's page in docs/protocols/ names the pair
  static void full_fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }
  static void pause() noexcept { pause_cpu(); }
  // For a wait whose other side runs a few dozen instructions but may be preempted among them.
  static void wait_a_little(int spin) noexcept;
  // The same where a later wake-up does little harm: sleeps after some yields, so that a thread of
  // a lower priority can end the wait.
  static void wait_or_sleep(unsigned attempt) noexcept;
  static constexpr int lock_spins = 1000;  // about 10 µs

  // A searcher's pauses for the answer of an owner: 5 µs for runnables, 20 µs for parts of forks,
  // since an owner comes to its next fork less often than to its queue. No other thread spins.
  // These do since the other way, a membarrier, interrupts all processors of the program and waits
  // for them, which takes 15 to 50 µs on many virtual machines.
  class patience {
   public:
    static constexpr std::int64_t for_turns_ns = 5'000, for_forks_ns = 20'000;
    explicit patience(std::int64_t span_ns = for_turns_ns) noexcept;
    // Pauses. True when the time is over.
    bool is_over() noexcept;

   private:
    std::int64_t end_ns_;
    unsigned pauses_ = 0;
  };
};

}  // namespace troupe::base
