// block_pool: small blocks for messages, activations and coroutine frames.
//
// Threads: any; a block may be freed on another thread than the one that allocated it.
// Cost: about 2 ns from the thread's own magazine; a lock once in 128 blocks.
// Limits: blocks above 512 bytes go to operator new. Memory taken for small blocks stays with the
// process for reuse. ASan builds use operator new throughout, so that use after free is seen.
#pragma once

#include <cstddef>

namespace troupe::memory {

inline constexpr std::size_t block_bytes_max = 512;

// Aligned to 16 bytes. Throws std::bad_alloc.
[[nodiscard]] void* allocate(std::size_t bytes);

// `bytes` as it was allocated.
void deallocate(void* block, std::size_t bytes) noexcept;

}  // namespace troupe::memory
