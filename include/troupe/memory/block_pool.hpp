// block_pool: small blocks for messages, activations and coroutine frames.
//
// Thread: any; a block may be freed on another thread than the one that allocated it.
// Cost: about 1 ns from the thread's own magazine; a lock once in 128 blocks.
// Limits: blocks above 512 bytes come from operator new. Memory for small blocks is never given
// back to the system, but reused. A library that was built with AddressSanitizer uses operator new
// for all blocks, so that a use after free is detected.
#pragma once

#include "troupe/base/language.hpp"

#include <array>
#include <cstddef>
#include <new>

#include "troupe/base/platform.hpp"
#include "troupe/memory/magazine.hpp"

namespace troupe::memory {

// The namespace is named after the source of blocks, so that a program does not link if it was
// compiled in another way than the library.
#if TROUPE_PLAIN_BLOCKS
inline namespace plain_blocks {
#else
inline namespace pooled_blocks {
#endif

inline constexpr std::size_t block_bytes_max = 512;

namespace detail {

inline constexpr std::size_t class_step = 16;
// for stable_pool.hpp alone
inline constexpr std::size_t stable_class = block_bytes_max / class_step;
inline constexpr std::size_t classes = stable_class + 1;

constexpr std::size_t class_of(std::size_t bytes) noexcept {
  return bytes == 0 ? 0 : (bytes - 1) / class_step;
}

// The calling thread's magazines, one for each size class.
extern constinit thread_local std::array<magazine, classes> magazines
    [[gnu::tls_model("initial-exec")]];

// The slow paths, for an empty magazine and for a full one. refill throws std::bad_alloc.
free_block* refill(std::size_t size_class);
void store(std::size_t size_class, free_block* surplus) noexcept;

}  // namespace detail

#if TROUPE_PLAIN_BLOCKS
[[nodiscard]] void* allocate(std::size_t bytes);
void deallocate(void* block, std::size_t bytes) noexcept;
#else

// Allocates a block, aligned to 16 bytes. Throws std::bad_alloc. Not for the body of a coroutine,
// since it uses a thread-local.
[[nodiscard]] TROUPE_INLINE void* allocate(std::size_t bytes) {
  if (bytes > block_bytes_max) return ::operator new(bytes);
  const std::size_t size_class = detail::class_of(bytes);
  if (free_block* block = detail::magazines[size_class].take()) [[likely]]
    return block;
  return detail::refill(size_class);
}

// Frees a block. `bytes` must be the size that was allocated.
TROUPE_INLINE void deallocate(void* block, std::size_t bytes) noexcept {
  if (bytes > block_bytes_max) return ::operator delete(block);
  const std::size_t size_class = detail::class_of(bytes);
  if (free_block* surplus = detail::magazines[size_class].give(static_cast<free_block*>(block)))
      [[unlikely]] {
    detail::store(size_class, surplus);
  }
}

#endif

}  // inline namespace

// An allocator of this pool for containers of the standard library.
template <class T>
struct block_allocator {
  using value_type = T;
  block_allocator() = default;
  template <class U>
  block_allocator(const block_allocator<U>&) noexcept {}

  // Not inlined: a coroutine must not keep the address of the pool's thread-local across a
  // suspension, after which it may run on another thread.
  TROUPE_NOINLINE T* allocate(std::size_t count) {
    static_assert(alignof(T) <= 16, "troupe: blocks are aligned to 16 bytes");
    return static_cast<T*>(memory::allocate(count * sizeof(T)));
  }
  TROUPE_NOINLINE void deallocate(T* block, std::size_t count) noexcept {
    memory::deallocate(block, count * sizeof(T));
  }

  template <class U>
  bool operator==(const block_allocator<U>&) const noexcept {
    return true;
  }
};

}  // namespace troupe::memory
