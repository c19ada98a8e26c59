// thread_shard: which part of a number that many threads change is the calling thread's own.
//
// Memory: a number has a part for each thread that has changed it, at most 65, and keeps them; a
// histogram's part has 320 bytes.
// Threads: any. Invariants
//   T1  no two threads that live have the same shard of their own. A thread leaves its shard, and
//       the next one takes it, under the same mutex: the next one sees all that was counted there.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "troupe/base/platform.hpp"

namespace troupe::observe {

class thread_shard {
 public:
  // So many threads have a shard of their own; the others share one.
  static constexpr std::size_t own_max = 64, shared = own_max;

  // Below own_max: a shard that no other thread writes.
  TROUPE_INLINE_HERE static std::size_t here() noexcept {
    if (number != 0) [[likely]]
      return number - 1;
    return take();
  }

 private:
  struct leaving;
  static thread_local leaving at_end [[gnu::tls_model("initial-exec")]];
  static std::size_t take() noexcept;
  static constinit thread_local std::uint8_t number [[gnu::tls_model("initial-exec")]];  // 0: none
};

// A T for each thread that counts, which that thread changes without a locked instruction, and one
// for those without a shard of their own, or without memory.
template <class T>
class sharded {
 public:
  sharded() = default;
  sharded(const sharded&) = delete;
  sharded& operator=(const sharded&) = delete;
  ~sharded() {
    // order: relaxed  no other thread is left
    for (auto& slot : own_) delete slot.load(std::memory_order_relaxed);
  }

  // The calling thread's own; null: it changes shared() with the others.
  T* own() noexcept {
    const std::size_t index = thread_shard::here();
    if (index == thread_shard::shared) [[unlikely]]
      return nullptr;
    // order: relaxed  the thread's own, perhaps made by a thread that has ended (T1)
    T* const known = own_[index].load(std::memory_order_relaxed);
    return known != nullptr ? known : make(index);
  }
  T& shared() noexcept { return shared_; }

  template <class Look>
  void for_each(Look look) const {
    look(shared_);
    for (const auto& slot : own_) {
      // order: acquire  sees the complete shard; pairs with make/release
      if (const T* const shard = slot.load(std::memory_order_acquire)) look(*shard);
    }
  }

 private:
  TROUPE_NOINLINE T* make(std::size_t index) noexcept {
    T* const fresh = new (std::nothrow) T;
    // order: release  pairs with for_each/acquire
    own_[index].store(fresh, std::memory_order_release);
    return fresh;
  }

  std::array<std::atomic<T*>, thread_shard::own_max> own_{};
  T shared_;
};

}  // namespace troupe::observe
