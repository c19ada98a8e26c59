// lease_words: for which shards a node may act now, for any thread.
// Writer: the loop of placement. Readers: any thread.
// Invariants
//   W1  a shard that is taken away loses its fence before `until` is set to a later time: a reader
//       that sees the later time does not see the fence from before.
//   W2  a shard that is given gets its fence after `until` was set for it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "cluster/leases/lease_store.hpp"

namespace troupe::cluster {

class lease_words {
 public:
  // `now` is called after the words were read: the answer held at the moment of that call.
  template <class Clock>
  bool is_mine(std::uint32_t shard, const Clock& now) const noexcept {
    return has(shard, now, [](std::uint64_t held) { return held != 0; });
  }
  // Whether it is this node's under that fence.
  template <class Clock>
  bool is_mine(std::uint32_t shard, std::uint64_t fence, const Clock& now) const noexcept {
    return has(shard, now, [fence](std::uint64_t held) { return held != 0 && held == fence; });
  }
  // 0: the node does not have it.
  std::uint64_t fence(std::uint32_t shard) const noexcept {
    // order: acquire  the earlier calls for this shard; pairs with give/release
    return shard < shard_count ? fences_[shard].load(std::memory_order_acquire) : 0;
  }
  std::chrono::nanoseconds until() const noexcept {
    // order: relaxed  for the writer alone
    return std::chrono::nanoseconds(until_ns_.load(std::memory_order_relaxed));
  }

  // The writer's.
  void set_until(std::chrono::nanoseconds time) noexcept {
    // order: release  publishes the shards taken away before (W1); pairs with is_mine/acquire
    until_ns_.store(time.count(), std::memory_order_release);
  }
  void give(std::uint32_t shard, std::uint64_t fence) noexcept {
    // order: release  pairs with fence/acquire
    fences_[shard].store(fence, std::memory_order_release);
  }
  void take_away(std::uint32_t shard) noexcept { give(shard, 0); }

 private:
  template <class Clock, class Fits>
  bool has(std::uint32_t shard, const Clock& now, Fits fits) const noexcept {
    if (shard >= shard_count) return false;
    // order: acquire  sees the shards taken away before (W1); pairs with set_until/release
    const std::int64_t until = until_ns_.load(std::memory_order_acquire);
    // order: acquire  as in fence()
    if (!fits(fences_[shard].load(std::memory_order_acquire))) return false;
    if (until == forever_ns) return true;  // reading the clock costs more than all the rest
    return std::chrono::nanoseconds(now()).count() < until;
  }

  static constexpr std::int64_t forever_ns = std::chrono::nanoseconds::max().count();

  std::atomic<std::int64_t> until_ns_{0};
  std::array<std::atomic<std::uint64_t>, shard_count> fences_{};
};

}  // namespace troupe::cluster
