// Free blocks: a thread's blocks, the depot's blocks, and new ones cut from chunks.
#include "context/blocks/block.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <new>

#include "base/threads/at_fork.hpp"
#include "context/blocks/poison.hpp"
#include "context/blocks/tally.hpp"
#include "memory/chunk.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::contexts {

static_assert(chunk_bytes == memory::chunk_bytes);

chunk_map chunks_here{};

namespace {

// All but the first of the chunks that belong to one block of more than 2 MiB.
chunk_map chunks_inside{};

void mark(chunk_map& map, std::uintptr_t chunk, bool present) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << (chunk % 64);
  const std::atomic_ref word(map[chunk / 64]);
  // order: relaxed  see is_chunk
  present ? word.fetch_or(bit, std::memory_order_relaxed)
          : word.fetch_and(~bit, std::memory_order_relaxed);
}

std::uintptr_t address_of(const void* memory) noexcept {
  return reinterpret_cast<std::uintptr_t>(memory);
}

// owner_of() never looks up the first page, because that is the head.
void set_owner(block& block, context* owner) noexcept {
  const std::uintptr_t at = address_of(&block);
  auto& head = *reinterpret_cast<chunk_head*>(at & ~(chunk_bytes - 1));
  const std::size_t first = (at >> page_shift) % chunk_pages;
  const std::size_t last = std::min(first + block.bytes / page_bytes, chunk_pages);
  // order: relaxed  see owner_of
  for (std::size_t page = first; page < last; ++page)
    head.owners[page].store(owner, std::memory_order_relaxed);
}

// Maps chunks in one piece, and enters them in the maps.
std::byte* take_chunks(std::size_t count) {
  auto* chunks = static_cast<std::byte*>(memory::map_chunks(count));
  const std::uintptr_t first = address_of(chunks) >> chunk_shift;
  ::new (chunks) chunk_head{};
  add_leak_root(chunks, count * chunk_bytes);
  mark(chunks_here, first, true);
  for (std::size_t i = 1; i < count; ++i) mark(chunks_inside, first + i, true);
  return chunks;
}

void return_chunks(std::byte* chunks, std::size_t count) noexcept {
  const std::uintptr_t first = address_of(chunks) >> chunk_shift;
  mark(chunks_here, first, false);
  for (std::size_t i = 1; i < count; ++i) mark(chunks_inside, first + i, false);
  remove_leak_root(chunks, count * chunk_bytes);
  unpoison(chunks, count * chunk_bytes);
  memory::unmap_chunks(chunks, count);
}

// Free blocks of one size, linked by `newer`.
struct free_list {
  block* first = nullptr;
  std::size_t count = 0;

  void push(block& block) noexcept {
    block.newer = first;
    first = &block;
    ++count;
  }
  block* pop() noexcept {
    block* popped = first;
    if (popped == nullptr) return nullptr;
    first = popped->newer;
    --count;
    return popped;
  }
};

// Threads change the lists of different classes at the same time: none shares a line of the cache.
struct alignas(base::line_bytes) depot_class {
  std::mutex mutex;
  free_list free;
  std::byte* fresh = nullptr;  // the unused rest of the newest chunk
  std::size_t fresh_left = 0;  // blocks
};

// The object is never destroyed: threads may end after the program's statics.
std::array<depot_class, own_class>& depot() {
  static auto& instance = *[] {
    auto* const depots = new std::array<depot_class, own_class>;
    for (depot_class& size_class : *depots) base::hold_at_fork(size_class.mutex);
    return depots;
  }();
  return instance;
}

// How many blocks of each class a thread keeps: about 700 KiB at most, and one chunk. Half of them
// move to or from the depot at a time.
constexpr std::array<std::uint8_t, own_class> own_max{64, 16, 4, 1, 1};
constexpr std::size_t idle_chunks_max = 16;

// The free lists of one thread, one for each class, in less thread-local storage than free_list.
struct own_lists {
  std::array<block*, own_class> first{};
  std::array<std::uint8_t, own_class> count{};

  void push(std::uint8_t size_class, block& block) noexcept {
    block.newer = first[size_class];
    first[size_class] = &block;
    ++count[size_class];
  }
  block* pop(std::uint8_t size_class) noexcept {
    block* const popped = first[size_class];
    if (popped == nullptr) return nullptr;
    first[size_class] = popped->newer;
    --count[size_class];
    return popped;
  }
};
constinit thread_local own_lists own [[gnu::tls_model("initial-exec")]]{};

void give_back(std::uint8_t size_class, std::size_t leave) noexcept {
  depot_class& size_depot = depot()[size_class];
  std::lock_guard lock(size_depot.mutex);
  while (own.count[size_class] > leave) {
    block& block = *own.pop(size_class);
    size_depot.free.push(block);
    if (size_class == own_class - 1 && size_depot.free.count > idle_chunks_max) {
      ::madvise(reinterpret_cast<std::byte*>(&block) + page_bytes, block.bytes - page_bytes,
                MADV_DONTNEED);
    }
  }
}

struct flusher {
  bool armed = false;
  ~flusher() {
    for (std::uint8_t i = 0; armed && i < own_class; ++i) give_back(i, 0);
  }
};
thread_local flusher at_thread_end;

block& cut(depot_class& from, std::uint8_t size_class) {
  if (from.fresh_left == 0) {
    from.fresh = take_chunks(1) + page_bytes;
    from.fresh_left = class_bytes.back() / class_bytes[size_class];
  }
  auto& fresh = *::new (from.fresh) block{};
  fresh.bytes = class_bytes[size_class];
  fresh.size_class = size_class;
  poison(fresh.begin(), fresh.bytes - sizeof(block));
  from.fresh += fresh.bytes;
  --from.fresh_left;
  return fresh;
}

TROUPE_NOINLINE block& refill(std::uint8_t size_class) {
  at_thread_end.armed = true;
  depot_class& from = depot()[size_class];
  std::lock_guard lock(from.mutex);
  for (std::size_t i = 1; i < own_max[size_class] / 2 && from.free.first != nullptr; ++i)
    own.push(size_class, *from.free.pop());
  if (block* free_block = from.free.pop()) return *free_block;
  return cut(from, size_class);
}

block& take_own(std::size_t at_least) {
  if (at_least > SIZE_MAX / 2) throw std::bad_alloc();
  const std::size_t count = (page_bytes + sizeof(block) + at_least + chunk_bytes - 1) / chunk_bytes;
  auto& taken = *::new (take_chunks(count) + page_bytes) block{};
  taken.bytes = count * chunk_bytes - page_bytes;
  taken.size_class = own_class;
  poison(taken.begin(), taken.bytes - sizeof(block));
  return taken;
}

}  // namespace

block& take_block(std::uint8_t size_class, std::size_t at_least, context* owner) {
  while (size_class < own_class && class_bytes[size_class] - sizeof(block) < at_least) ++size_class;
  block* taken = nullptr;
  if (size_class == own_class) {
    taken = &take_own(at_least);
  } else {
    taken = own.pop(size_class);
    if (taken == nullptr) [[unlikely]]
      taken = &refill(size_class);
  }
  taken->older = taken->newer = nullptr;
  taken->end = reinterpret_cast<std::byte*>(taken) + taken->bytes;
  // order: relaxed  no other thread can see the block yet
  taken->shares.store(1, std::memory_order_relaxed);
  set_owner(*taken, owner != nullptr ? owner : reinterpret_cast<context*>(taken->begin()));
  count(&tally::bytes, static_cast<std::int64_t>(taken->bytes));
  return *taken;
}

void return_block(block& returned) noexcept {
  count(&tally::bytes, -static_cast<std::int64_t>(returned.bytes));
  set_owner(returned, nullptr);
  poison(returned.begin(), returned.bytes - sizeof(block));
  const std::uint8_t size_class = returned.size_class;
  if (size_class == own_class) {
    return return_chunks(reinterpret_cast<std::byte*>(&returned) - page_bytes,
                         (returned.bytes + page_bytes) / chunk_bytes);
  }
  if (own.count[size_class] == own_max[size_class]) [[unlikely]] {
    at_thread_end.armed = true;
    give_back(size_class, own_max[size_class] / 2);
  }
  own.push(size_class, returned);
}

context* owner_elsewhere(std::uintptr_t address) noexcept {
  std::uintptr_t chunk = address >> chunk_shift;
  if (!is_chunk(chunks_inside, chunk)) return nullptr;
  while (!is_chunk(chunks_here, chunk)) --chunk;
  const auto* head = reinterpret_cast<const chunk_head*>(chunk << chunk_shift);
  // order: relaxed  see owner_of
  return head->owners[1].load(std::memory_order_relaxed);
}

}  // namespace troupe::contexts
