// block: what a context's memory is made of: whole pages within one chunk, or a chunk of its own.
//
// Threads: any. A thread keeps a few free blocks of each size for itself, others go through a
// locked depot. Limits: chunks stay with the process for reuse; beyond 32 MiB of free ones the
// kernel has their pages back. What is too large for a chunk is mapped for itself, and unmapped.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "context/blocks/share_count.hpp"
#include "troupe/context/owner_of.hpp"

namespace troupe::contexts {

struct block {
  block* older;
  block* newer;
  // of what its context may give out; less than its size when something persisted has the rest
  std::byte* end;
  std::size_t bytes;
  std::size_t total;  // bytes of this block and of all older ones of the context
  // by share_count: its context's, and one for each keep that has a part of it
  std::atomic<std::uint32_t> shares;
  std::uint8_t size_class;

  std::byte* begin() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  std::size_t room() noexcept { return static_cast<std::size_t>(end - begin()); }
};

// Of whole pages; the last one is all of a chunk but its head. A block of its own: `own_class`.
inline constexpr std::array<std::size_t, 5> class_bytes{4 << 10, 16 << 10, 64 << 10, 256 << 10,
                                                        chunk_bytes - page_bytes};
inline constexpr std::uint8_t own_class = class_bytes.size();
inline constexpr std::size_t block_room_max = class_bytes.back() - sizeof(block);

// With one share. Room for `at_least` bytes, which may exceed the class: then it is one of its own.
// `owner` null: the context that is about to be made at its beginning. Throws std::bad_alloc.
block& take_block(std::uint8_t size_class, std::size_t at_least, context* owner);
void return_block(block& one) noexcept;

inline void drop_block(block& one) noexcept {
  if (share_count(one.shares).drop()) return_block(one);
}

}  // namespace troupe::contexts
