// chunk: 2 MiB of fresh memory from the kernel, on a huge page where the kernel allows it.
//
// A huge page is resident as a whole from its first byte on. So who takes chunk after chunk takes
// small pages first: a small program stays small, and a large one is none the slower for its first
// megabytes.
#pragma once

#include <cstddef>

namespace troupe::memory {

inline constexpr std::size_t chunk_bytes = std::size_t{2} << 20;

inline constexpr std::size_t small_chunks = 4;  // are of small pages

// Zeroed, aligned to its size; one that has `before` of them already. Throws std::bad_alloc.
void* map_chunk(std::size_t before);
// So many in one piece, aligned to chunk_bytes. Throws std::bad_alloc.
void* map_chunks(std::size_t count);
void unmap_chunk(void* chunk) noexcept;
void unmap_chunks(void* chunks, std::size_t count) noexcept;

}  // namespace troupe::memory
