// magazine: the free blocks of one size that one thread keeps for itself.
//
// Two lists of at most `batch` blocks: one in use, one in reserve. A thread whose need for blocks
// varies by less than a batch never uses the shared depot, and no list is ever walked to divide it.
// Owner: one thread. Rejected: one list that is halved at its limit (to walk it costs a cache miss
// for each block).
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <utility>

#include "troupe/base/platform.hpp"

namespace troupe::memory {

// A free block, as a link of a list.
struct free_block {
  free_block* next;
};

class magazine {
 public:
  static constexpr std::size_t batch = 128;  // blocks

  // Takes a block; null if there is none, then call refill().
  TROUPE_INLINE free_block* take() noexcept {
    free_block* block = active_;
    if (block == nullptr) [[unlikely]] {
      if (reserve_ == nullptr) return nullptr;
      block = std::exchange(reserve_, nullptr);
      count_ = batch;
    }
    active_ = block->next;
    --count_;
    return block;
  }

  // Keeps the block. Returns a full batch that the caller must give to the depot, or null.
  TROUPE_INLINE free_block* give(free_block* block) noexcept {
    free_block* surplus = nullptr;
    if (count_ == batch) [[unlikely]] {
      surplus = std::exchange(reserve_, active_);
      active_ = nullptr;
      count_ = 0;
    }
    block->next = active_;
    active_ = block;
    ++count_;
    return surplus;
  }

  // Adds `count` blocks, at most a batch. Only after take() returned null.
  void refill(free_block* blocks, std::size_t count) noexcept {
    active_ = blocks;
    count_ = count;
  }

  // Takes out all blocks, one list for each call; null when none is left.
  free_block* drain() noexcept {
    if (free_block* blocks = std::exchange(active_, nullptr)) {
      count_ = 0;
      return blocks;
    }
    return std::exchange(reserve_, nullptr);
  }

 private:
  free_block* active_ = nullptr;
  free_block* reserve_ = nullptr;  // empty, or exactly a batch
  std::size_t count_ = 0;          // number of blocks in active_
};

}  // namespace troupe::memory
