// chunk_map: where the chunks of contexts lie, and which context owns each page of a chunk. For the
// library's own use; users meet owner_of.
//
// Context memory lies in chunks of 2 MiB, aligned to their size. The first page of a chunk lists
// the context that owns each of its pages. A bitmap with one bit for each 2 MiB of the address
// space marks the chunks: any pointer may be looked up. An allocation that needs more than one
// chunk gets several chunks in a row for itself, of which only the first begins with such a page; a
// second bitmap marks the others.
#pragma once

#include "troupe/base/language.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace troupe {

class context;

namespace contexts {

inline constexpr std::size_t page_bytes = 4096;
inline constexpr unsigned page_shift = 12, chunk_shift = 21;
inline constexpr std::size_t chunk_bytes = std::size_t{1} << chunk_shift;
inline constexpr std::size_t chunk_pages = chunk_bytes / page_bytes;
#if defined(__aarch64__)
inline constexpr unsigned address_bits = 48;
#else
inline constexpr unsigned address_bits = 47;
#endif
inline constexpr std::uintptr_t chunks_max = std::uintptr_t{1} << (address_bits - chunk_shift);

// The first page of a chunk.
struct chunk_head {
  std::array<std::atomic<context*>, chunk_pages> owners;  // of each page; null: no owner now
};
static_assert(sizeof(chunk_head) == page_bytes);

// One bit for each 2 MiB of the address space: set where a chunk with its first page lies. 8 MiB of
// zero pages that cost nothing until they are used. Accessed only as atomics.
using chunk_map = std::uint64_t[chunks_max / 64];
extern chunk_map chunks_here;

inline bool is_chunk(chunk_map& map, std::uintptr_t chunk) noexcept {
  if (chunk >= chunks_max) return false;
  // order: relaxed  a thread got its pointer into a chunk after the chunk was entered
  return (std::atomic_ref(map[chunk / 64]).load(std::memory_order_relaxed) >> (chunk % 64) & 1) !=
         0;
}

// The context that owns the page of an address in no chunk, or in a chunk that the second bitmap
// marks; null if none does.
context* owner_elsewhere(std::uintptr_t address) noexcept;

}  // namespace contexts

}  // namespace troupe
