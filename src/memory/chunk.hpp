// chunk: 2 MiB of fresh memory from the kernel, on a huge page where the kernel allows it.
//
// A huge page is resident as a whole once its first byte is used. A caller that takes chunk after
// chunk therefore gets small pages first. That keeps a small program small, and a large one is not
// slower for its first megabytes.
#pragma once

#include <cstddef>

namespace troupe::memory {

inline constexpr std::size_t chunk_bytes = std::size_t{2} << 20;

inline constexpr std::size_t small_chunks = 4;  // the number of chunks with small pages

// Returns a zeroed chunk, aligned to its size. `before`: how many the caller has already. Throws
// std::bad_alloc.
void* map_chunk(std::size_t before);
// Returns `count` chunks in one piece, aligned to chunk_bytes. Throws std::bad_alloc.
void* map_chunks(std::size_t count);
void unmap_chunk(void* chunk) noexcept;
void unmap_chunks(void* chunks, std::size_t count) noexcept;

}  // namespace troupe::memory
