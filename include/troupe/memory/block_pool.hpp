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
#include <cstdint>
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
// Blocks up to this size are listed in the thread-local itself, larger ones behind a pointer in it:
// all shared objects that are loaded by dlopen share about 1.6 KB of such thread-locals.
inline constexpr std::size_t near_bytes_max = 64;
// The blocks of stable_pool.hpp have a class of their own.
inline constexpr std::size_t stable_bytes = 64;
inline constexpr std::size_t stable_class = near_bytes_max / class_step;
inline constexpr std::size_t near_classes = stable_class + 1;
inline constexpr std::size_t far_classes = (block_bytes_max - near_bytes_max) / class_step;
inline constexpr std::size_t classes = near_classes + far_classes;

constexpr std::size_t near_class_of(std::size_t bytes) noexcept {
  return bytes == 0 ? 0 : (bytes - 1) / class_step;
}
// Among the far classes.
constexpr std::size_t far_class_of(std::size_t bytes) noexcept {
  return (bytes - near_bytes_max - 1) / class_step;
}

// One thread's free blocks of several sizes, at most a magazine's batch of each.
template <std::size_t Sizes>
struct free_lists {
  // Null if there is none, then call refill().
  TROUPE_INLINE free_block* take(std::size_t size) noexcept {
    free_block* const block = first[size];
    if (block == nullptr) [[unlikely]]
      return nullptr;
    first[size] = block->next;
    --count[size];
    return block;
  }
  // False: there is no room, then call store().
  TROUPE_INLINE bool give(std::size_t size, free_block* block) noexcept {
    if (count[size] == magazine::batch) [[unlikely]]
      return false;
    block->next = first[size];
    first[size] = block;
    ++count[size];
    return true;
  }

  std::array<free_block*, Sizes> first{};
  std::array<std::uint8_t, Sizes> count{};
};

// Until the thread has lists of its own, `far` points to lists that are empty and have no room.
struct blocks_of_thread {
  free_lists<near_classes> near;
  free_lists<far_classes>* far;
};
extern constinit thread_local blocks_of_thread blocks_here [[gnu::tls_model("initial-exec")]];

// The slow paths, for a list without a block and for one without room. refill throws
// std::bad_alloc.
free_block* refill(std::size_t size_class);
void store(std::size_t size_class, free_block* block) noexcept;

}  // namespace detail

#if TROUPE_PLAIN_BLOCKS
[[nodiscard]] void* allocate(std::size_t bytes);
void deallocate(void* block, std::size_t bytes) noexcept;
#else

// Allocates a block, aligned to 16 bytes. Throws std::bad_alloc. Not for the body of a coroutine,
// since it uses a thread-local.
[[nodiscard]] TROUPE_INLINE void* allocate(std::size_t bytes) {
  if (bytes > block_bytes_max) return ::operator new(bytes);
  if (bytes > detail::near_bytes_max) {
    const std::size_t size = detail::far_class_of(bytes);
    if (free_block* block = detail::blocks_here.far->take(size)) [[likely]]
      return block;
    return detail::refill(detail::near_classes + size);
  }
  const std::size_t size = detail::near_class_of(bytes);
  if (free_block* block = detail::blocks_here.near.take(size)) [[likely]]
    return block;
  return detail::refill(size);
}

// Frees a block. `bytes` must be the size that was allocated.
TROUPE_INLINE void deallocate(void* block, std::size_t bytes) noexcept {
  if (bytes > block_bytes_max) return ::operator delete(block);
  auto* const freed = static_cast<free_block*>(block);
  if (bytes > detail::near_bytes_max) {
    const std::size_t size = detail::far_class_of(bytes);
    if (!detail::blocks_here.far->give(size, freed)) [[unlikely]]
      detail::store(detail::near_classes + size, freed);
    return;
  }
  const std::size_t size = detail::near_class_of(bytes);
  if (!detail::blocks_here.near.give(size, freed)) [[unlikely]]
    detail::store(size, freed);
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
