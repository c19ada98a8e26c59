// Each thread has a list of free blocks for each size class, and a reserve. Full and empty batches
// travel through a locked depot. A thread that ends gives its blocks back to the depot.
#include "troupe/memory/block_pool.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/threads/at_fork.hpp"
#include "memory/chunk.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::memory {
namespace {

using detail::classes;
using detail::stable_class;

constexpr std::size_t span_bytes = 64 * 1024;

// Threads change the lists of different classes at the same time: none shares a line of the cache.
struct alignas(base::line_bytes) batch_list {
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
  alignas(base::line_bytes) std::mutex chunk_mutex;
  std::byte* chunk = nullptr;
  std::size_t chunk_left = 0, chunks = 0;

  static depot& get() {
    static depot& instance = *[] {
      auto* const created = new depot;
      for (batch_list& list : created->lists) base::hold_at_fork(list.mutex);
      base::hold_at_fork(created->chunk_mutex);
      return created;
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

// Unused memory from which a thread cuts blocks.
struct span_of_thread {
  std::byte* at = nullptr;
  std::size_t left = 0;
};

// The lists of a thread's larger blocks; and for each class a reserve, empty or exactly a batch. A
// thread whose need for blocks varies by less than a batch never uses the depot.
struct far_blocks : detail::free_lists<detail::far_classes> {
  std::array<free_block*, classes> reserve{};
  span_of_thread span;
};

// The lists of threads without lists of their own: they have no block, and no room for a block.
// Never written.
constexpr detail::free_lists<detail::far_classes> without_room() noexcept {
  detail::free_lists<detail::far_classes> lists;
  lists.count.fill(magazine::batch);
  return lists;
}
constinit detail::free_lists<detail::far_classes> no_far_blocks = without_room();

}  // namespace

constinit thread_local detail::blocks_of_thread detail::blocks_here{.near = {},
                                                                    .far = &no_far_blocks};

namespace {

using detail::blocks_here;
using detail::near_classes;

void store_in_depot(std::size_t size_class, free_block* blocks) noexcept {
  if (blocks == nullptr) return;
  batch_list& list = depot::get().lists[size_class];
  std::lock_guard lock(list.mutex);
  list.loosen(blocks);
}

// Null: the thread has none yet.
far_blocks* own_far_blocks() noexcept {
  return blocks_here.far == &no_far_blocks ? nullptr : static_cast<far_blocks*>(blocks_here.far);
}

// Returns the thread's blocks to the pool when the thread ends.
struct block_flusher {
  bool ended = false;
  ~block_flusher() {
    ended = true;
    far_blocks* const far = own_far_blocks();
    for (std::size_t i = 0; i < near_classes; ++i) store_in_depot(i, blocks_here.near.first[i]);
    blocks_here = {.near = {}, .far = &no_far_blocks};
    if (far == nullptr) return;
    for (std::size_t i = 0; i < classes; ++i) {
      store_in_depot(i, far->reserve[i]);
      if (i >= near_classes) store_in_depot(i, far->first[i - near_classes]);
    }
    std::free(far);
  }
};
thread_local block_flusher flusher;

// Makes them at the first call. Null if memory is out, or the thread ends and has given its blocks
// back.
far_blocks* far_blocks_here() noexcept {
  if (far_blocks* const own = own_far_blocks()) return own;
  if (flusher.ended) return nullptr;
  // Not by operator new: a program may replace that, and has asked for nothing here.
  void* const memory = std::malloc(sizeof(far_blocks));
  if (memory == nullptr) return nullptr;
  auto* const blocks = ::new (memory) far_blocks;
  blocks_here.far = blocks;
  return blocks;
}

// Blocks that are linked.
struct chain {
  free_block* first = nullptr;
  std::size_t count = 0;
};

// The blocks that other threads gave back: a batch, or loose ones if there is no batch.
chain take_from_depot(batch_list& list) {
  std::lock_guard lock(list.mutex);
  chain taken;
  if (!list.full.empty()) {
    taken = {list.full.back(), magazine::batch};
    list.full.pop_back();
    return taken;
  }
  for (; list.loose != nullptr && taken.count < magazine::batch; ++taken.count) {
    free_block* block = list.loose;
    list.loose = block->next;
    block->next = taken.first;
    taken.first = block;
  }
  return taken;
}

// Cuts new blocks in the order of their addresses, so that blocks taken one after the other are
// neighbours in memory.
chain cut_from_span(span_of_thread& span, std::size_t bytes, std::size_t most) {
  if (span.left < bytes) span = {depot::get().take_span(), span_bytes};
  const std::size_t count = std::min(span.left / bytes, most);
  free_block* blocks = nullptr;
  for (std::size_t i = count; i-- > 0;) {
    auto* block = reinterpret_cast<free_block*>(span.at + i * bytes);
    block->next = blocks;
    blocks = block;
  }
  span.at += count * bytes;
  span.left -= count * bytes;
  return {blocks, count};
}

constexpr std::size_t bytes_of(std::size_t size_class) noexcept {
  if (size_class == stable_class) return detail::stable_bytes;
  // the stable class is between the near and the far ones
  return (size_class < stable_class ? size_class + 1 : size_class) * detail::class_step;
}
static_assert(bytes_of(classes - 1) == block_bytes_max);

// For a thread that cannot keep a span: one block of it, and the others for all threads.
free_block* cut_whole_span(std::size_t size_class) {
  span_of_thread span;
  const chain all = cut_from_span(span, bytes_of(size_class), span_bytes);
  store_in_depot(size_class, all.first->next);
  return all.first;
}

}  // namespace

TROUPE_NOINLINE free_block* detail::refill(std::size_t size_class) {
  far_blocks* const far = far_blocks_here();
  chain taken;
  if (far != nullptr && far->reserve[size_class] != nullptr)
    taken = {std::exchange(far->reserve[size_class], nullptr), magazine::batch};
  if (taken.count == 0) taken = take_from_depot(depot::get().lists[size_class]);
  if (taken.count == 0 && far != nullptr)
    taken = cut_from_span(far->span, bytes_of(size_class), magazine::batch);
  if (taken.count == 0) return cut_whole_span(size_class);
  free_block* const rest = taken.first->next;
  const auto left = static_cast<std::uint8_t>(taken.count - 1);
  if (size_class < near_classes) {
    blocks_here.near.first[size_class] = rest;
    blocks_here.near.count[size_class] = left;
  } else if (far != nullptr) {
    far->first[size_class - near_classes] = rest;
    far->count[size_class - near_classes] = left;
  } else {
    store_in_depot(size_class, rest);
  }
  return taken.first;
}

TROUPE_NOINLINE void detail::store(std::size_t size_class, free_block* block) noexcept {
  far_blocks* const far = far_blocks_here();
  block->next = nullptr;
  if (size_class >= near_classes && far == nullptr) return store_in_depot(size_class, block);
  const std::size_t at = size_class < near_classes ? size_class : size_class - near_classes;
  free_block*& first = size_class < near_classes ? blocks_here.near.first[at] : far->first[at];
  std::uint8_t& count = size_class < near_classes ? blocks_here.near.count[at] : far->count[at];
  if (count != magazine::batch) {  // the thread has just got its far lists
    block->next = first;
    first = block;
    ++count;
    return;
  }
  free_block* surplus = std::exchange(first, block);
  count = 1;
  if (far != nullptr) surplus = std::exchange(far->reserve[size_class], surplus);
  if (surplus == nullptr) return;
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
