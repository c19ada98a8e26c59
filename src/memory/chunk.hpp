// chunk: 2 MiB of fresh memory from the kernel, on a huge page where the kernel allows it.
#pragma once

#include <cstddef>

namespace troupe::memory {

inline constexpr std::size_t chunk_bytes = std::size_t{2} << 20;

// Zeroed, aligned to its size. Throws std::bad_alloc.
void* map_chunk();
// So many in one piece, aligned to chunk_bytes. Throws std::bad_alloc.
void* map_chunks(std::size_t count);
void unmap_chunk(void* chunk) noexcept;
void unmap_chunks(void* chunks, std::size_t count) noexcept;

}  // namespace troupe::memory
