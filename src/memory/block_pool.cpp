// Each thread has a magazine for each size class. Full and empty batches travel through a locked
// depot. A thread that ends gives its blocks back to the depot.
#include "troupe/memory/block_pool.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

#include "base/threads/at_fork.hpp"
#include "memory/chunk.hpp"
#include "memory/stable_pool.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::memory {
namespace {

using detail::classes;
using detail::magazines;
using detail::stable_class;

constexpr std::size_t span_bytes = 64 * 1024;

struct batch_list {
  std::mutex mutex;
  std::vector<free_block*> full;  // each has exactly one batch
  free_block* loose = nullptr;    // from threads that ended, or full batches when memory ran out

  void loosen(free_block* blocks) noexcept {
    while (blocks != nullptr) {
      free_block* next = blocks->next;
      blocks->next = loose;
      loose = blocks;
      blocks = next;
    }
  }
};

// The object is never destroyed: threads may end after the program's statics.
struct depot {
  std::array<batch_list, classes> lists;
  std::mutex chunk_mutex;
  std::byte* chunk = nullptr;
  std::size_t chunk_left = 0, chunks = 0;

  static depot& get() {
    static depot& instance = *[] {
      auto* const made = new depot;
      for (batch_list& one : made->lists) base::hold_at_fork(one.mutex);
      base::hold_at_fork(made->chunk_mutex);
      return made;
    }();
    return instance;
  }

  std::byte* take_span() {
    std::lock_guard lock(chunk_mutex);
    if (chunk_left == 0) {
      chunk = static_cast<std::byte*>(map_chunk(chunks++));
      chunk_left = chunk_bytes;
    }
    std::byte* span = chunk;
    chunk += span_bytes;
    chunk_left -= span_bytes;
    return span;
  }
};

// Unused memory from which the calling thread cuts blocks.
struct thread_span {
  std::byte* at = nullptr;
  std::size_t left = 0;
};
constinit thread_local thread_span span;

// Gives the thread's blocks back when it ends.
struct magazine_flusher {
  bool armed = false;
  ~magazine_flusher() {
    if (!armed) return;
    for (std::size_t i = 0; i < classes; ++i) {
      while (free_block* blocks = magazines[i].drain()) {
        batch_list& list = depot::get().lists[i];
        std::lock_guard lock(list.mutex);
        list.loosen(blocks);
      }
    }
  }
};
thread_local magazine_flusher flusher;

// Takes blocks that other threads gave back: a batch, or loose ones if there is no batch.
bool refill_from_depot(magazine& mine, batch_list& list) {
  std::lock_guard lock(list.mutex);
  if (!list.full.empty()) {
    mine.refill(list.full.back(), magazine::batch);
    list.full.pop_back();
    return true;
  }
  free_block* blocks = nullptr;
  std::size_t count = 0;
  for (; list.loose != nullptr && count < magazine::batch; ++count) {
    free_block* block = list.loose;
    list.loose = block->next;
    block->next = blocks;
    blocks = block;
  }
  if (count != 0) mine.refill(blocks, count);
  return count != 0;
}

// Cuts new blocks in the order of their addresses, so that blocks taken one after the other are
// neighbours in memory.
void refill_from_span(magazine& mine, std::size_t bytes) {
  if (span.left < bytes) span = {depot::get().take_span(), span_bytes};
  const std::size_t count = std::min(span.left / bytes, magazine::batch);
  free_block* blocks = nullptr;
  for (std::size_t i = count; i-- > 0;) {
    auto* block = reinterpret_cast<free_block*>(span.at + i * bytes);
    block->next = blocks;
    blocks = block;
  }
  span.at += count * bytes;
  span.left -= count * bytes;
  mine.refill(blocks, count);
}

}  // namespace

constinit thread_local std::array<magazine, classes> detail::magazines{};

TROUPE_NOINLINE free_block* detail::refill(std::size_t size_class) {
  flusher.armed = true;
  magazine& mine = magazines[size_class];
  if (!refill_from_depot(mine, depot::get().lists[size_class])) {
    refill_from_span(mine,
                     size_class == stable_class ? stable_bytes : (size_class + 1) * class_step);
  }
  return mine.take();
}

TROUPE_NOINLINE void detail::store(std::size_t size_class, free_block* surplus) noexcept {
  flusher.armed = true;
  batch_list& list = depot::get().lists[size_class];
  std::lock_guard lock(list.mutex);
  try {
    // Reserves more than is mostly needed, so that programs in their steady state take nothing more
    // from the heap.
    if (list.full.capacity() == 0) list.full.reserve(64);
    list.full.push_back(surplus);
  } catch (const std::bad_alloc&) {
    list.loosen(surplus);
  }
}

#if TROUPE_PLAIN_BLOCKS
void* plain_blocks::allocate(std::size_t bytes) { return ::operator new(bytes); }
void plain_blocks::deallocate(void* block, std::size_t) noexcept { ::operator delete(block); }
#endif

}  // namespace troupe::memory
