// Each thread has a magazine a size class; full and empty batches travel through a locked depot.
// A thread that ends gives its blocks back to the depot.
#include "troupe/memory/block_pool.hpp"

#include <array>
#include <mutex>
#include <new>
#include <vector>

#include "memory/chunk.hpp"
#include "memory/magazine.hpp"
#include "memory/stable_pool.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::memory {
namespace {

constexpr std::size_t class_step = 16;
constexpr std::size_t stable_class = block_bytes_max / class_step;  // the last one: never shares its blocks
constexpr std::size_t classes = stable_class + 1;
constexpr std::size_t span_bytes = 64 * 1024;

constexpr std::size_t class_of(std::size_t bytes) noexcept { return bytes == 0 ? 0 : (bytes - 1) / class_step; }

struct batch_list {
  std::mutex mutex;
  std::vector<free_block*> full;  // each exactly a batch
  free_block* loose = nullptr;    // from threads that ended
};

// Never destroyed: threads may end after the program's statics.
struct depot {
  std::array<batch_list, classes> lists;
  std::mutex chunk_mutex;
  std::byte* chunk = nullptr;
  std::size_t chunk_left = 0;

  static depot& get() {
    static depot& instance = *new depot;
    return instance;
  }

  std::byte* take_span() {
    std::lock_guard lock(chunk_mutex);
    if (chunk_left == 0) {
      chunk = static_cast<std::byte*>(map_chunk());
      chunk_left = chunk_bytes;
    }
    std::byte* span = chunk;
    chunk += span_bytes;
    chunk_left -= span_bytes;
    return span;
  }
};

struct thread_cache {
  std::array<magazine, classes> magazines;
  std::byte* span = nullptr;
  std::size_t span_left = 0;
};

constinit thread_local thread_cache cache;

struct cache_flusher {
  bool armed = false;
  ~cache_flusher() {
    if (!armed) return;
    for (std::size_t i = 0; i < classes; ++i) {
      while (free_block* blocks = cache.magazines[i].drain()) {
        batch_list& list = depot::get().lists[i];
        std::lock_guard lock(list.mutex);
        while (blocks != nullptr) {
          free_block* next = blocks->next;
          blocks->next = list.loose;
          list.loose = blocks;
          blocks = next;
        }
      }
    }
  }
};

thread_local cache_flusher flusher;

TROUPE_NOINLINE free_block* refill(std::size_t size_class) {
  flusher.armed = true;
  magazine& mine = cache.magazines[size_class];
  batch_list& list = depot::get().lists[size_class];
  {
    std::lock_guard lock(list.mutex);
    if (!list.full.empty()) {
      mine.refill(list.full.back(), magazine::batch);
      list.full.pop_back();
      return mine.take();
    }
    free_block* blocks = nullptr;
    std::size_t count = 0;
    for (; list.loose != nullptr && count < magazine::batch; ++count) {
      free_block* block = list.loose;
      list.loose = block->next;
      block->next = blocks;
      blocks = block;
    }
    if (count != 0) {
      mine.refill(blocks, count);
      return mine.take();
    }
  }
  // Fresh blocks, in the order of their addresses: neighbours in time are neighbours in memory.
  const std::size_t bytes = size_class == stable_class ? stable_bytes : (size_class + 1) * class_step;
  if (cache.span_left < bytes) {
    cache.span = depot::get().take_span();
    cache.span_left = span_bytes;
  }
  std::size_t count = cache.span_left / bytes;
  if (count > magazine::batch) count = magazine::batch;
  free_block* blocks = nullptr;
  for (std::size_t i = count; i-- > 0;) {
    auto* block = reinterpret_cast<free_block*>(cache.span + i * bytes);
    block->next = blocks;
    blocks = block;
  }
  cache.span += count * bytes;
  cache.span_left -= count * bytes;
  mine.refill(blocks, count);
  return mine.take();
}

TROUPE_NOINLINE void store(std::size_t size_class, free_block* surplus) noexcept {
  flusher.armed = true;
  batch_list& list = depot::get().lists[size_class];
  std::lock_guard lock(list.mutex);
  list.full.push_back(surplus);
}

}  // namespace

TROUPE_NOINLINE void* allocate(std::size_t bytes) {
  if (TROUPE_ASAN || bytes > block_bytes_max) [[unlikely]] return ::operator new(bytes);
  const std::size_t size_class = class_of(bytes);
  if (free_block* block = cache.magazines[size_class].take()) [[likely]] return block;
  return refill(size_class);
}

TROUPE_NOINLINE void deallocate(void* block, std::size_t bytes) noexcept {
  if (TROUPE_ASAN || bytes > block_bytes_max) [[unlikely]] return ::operator delete(block);
  const std::size_t size_class = class_of(bytes);
  if (free_block* surplus = cache.magazines[size_class].give(static_cast<free_block*>(block))) [[unlikely]] {
    store(size_class, surplus);
  }
}

TROUPE_NOINLINE void* allocate_stable() {
  if (free_block* block = cache.magazines[stable_class].take()) [[likely]] return block;
  return refill(stable_class);
}

TROUPE_NOINLINE void deallocate_stable(void* block) noexcept {
  if (free_block* surplus = cache.magazines[stable_class].give(static_cast<free_block*>(block))) [[unlikely]] {
    store(stable_class, surplus);
  }
}

}  // namespace troupe::memory
