// stable_pool: blocks of one size that are never used for anything else and never given back to the
// system.
//
// A thread may read such a block after it was freed, and finds the data of another owner of that
// type. This is for protocols that check the data again after reading. While a block is free, its
// first word belongs to the pool. All other words keep their values, and are zero in a new block.
#pragma once

#include "troupe/memory/block_pool.hpp"

namespace troupe::memory {

using detail::stable_bytes;

// Threads: any. Throws std::bad_alloc.
[[nodiscard]] inline void* allocate_stable() {
  if (free_block* block = detail::blocks_here.near.take(detail::stable_class)) [[likely]]
    return block;
  return detail::refill(detail::stable_class);
}

inline void deallocate_stable(void* block) noexcept {
  auto* const freed = static_cast<free_block*>(block);
  if (!detail::blocks_here.near.give(detail::stable_class, freed)) [[unlikely]]
    detail::store(detail::stable_class, freed);
}

}  // namespace troupe::memory
