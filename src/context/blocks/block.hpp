// block: a piece of a context's memory: whole pages within one chunk, or a mapping of its own.
//
// Threads: any. A thread keeps a few free blocks of each size for itself; others go through a
// locked depot.
// Limits: chunks stay with the process for reuse. Of free chunks beyond 32 MiB the kernel gets the
// pages back. A block that is too large for a chunk is mapped separately, and unmapped when it is
// free.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "context/blocks/share_count.hpp"
#include "troupe/context/blocks/chunk_map.hpp"

namespace troupe::contexts {

struct block {
  block* older;
  block* newer;
  // The end of the part that its context may give out. Smaller than the size when a persisted
  // object has the rest.
  std::byte* end;
  std::size_t bytes;
  std::size_t total;  // bytes of this block and of all older ones of the context
  // Counted by share_count: one share of its context, and one of each keep that has a part of the
  // block.
  std::atomic<std::uint32_t> shares;
  std::uint8_t size_class;

  std::byte* begin() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  std::size_t room() noexcept { return static_cast<std::size_t>(end - begin()); }
};

// Each is a number of whole pages; the last one is a whole chunk without its head. A block with its
// own mapping has the class `own_class`.
inline constexpr std::array<std::size_t, 5> class_bytes{4 << 10, 16 << 10, 64 << 10, 256 << 10,
                                                        chunk_bytes - page_bytes};
inline constexpr std::uint8_t own_class = class_bytes.size();
inline constexpr std::size_t block_room_max = class_bytes.back() - sizeof(block);

// Returns a block with one share and space for `at_least` bytes. If that exceeds the class, the
// block is of a larger class or has its own mapping. `owner`: null for the context that is about to
// be created at the beginning of the block. Throws std::bad_alloc.
block& take_block(std::uint8_t size_class, std::size_t at_least, context* owner);
void return_block(block& returned) noexcept;

inline void drop_block(block& block) noexcept {
  if (share_count(block.shares).drop()) return_block(block);
}

}  // namespace troupe::contexts
