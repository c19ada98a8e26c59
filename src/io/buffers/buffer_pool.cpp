#include "io/buffers/buffer_pool.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "troupe/base/platform.hpp"

namespace troupe {

void io_buffer::give_back() noexcept {
  from_->give(std::exchange(data_, nullptr));
  size_ = 0;
}

namespace io {

std::byte* buffer_pool::make() noexcept {
  return static_cast<std::byte*>(::operator new(buffer_bytes, std::nothrow));
}
void buffer_pool::destroy(std::byte* data) noexcept { ::operator delete(data); }

buffer_pool::~buffer_pool() {
  const auto destroy_all = [](free_one* next) {
    while (next != nullptr) destroy(reinterpret_cast<std::byte*>(std::exchange(next, next->next)));
  };
  destroy_all(free_);
  // order: relaxed  this is the last use of the pool
  magazine* next = magazines_.load(std::memory_order_relaxed);
  while (next != nullptr) {
    destroy_all(next->free);
    delete std::exchange(next, next->next);
  }
}

// ---- a worker's own ----

buffer_pool::magazine* buffer_pool::own() noexcept {
  if (!has_magazines_) return nullptr;
  sched::waiting_operations::share* const share = sched::busy_share::current();
  if (share == nullptr) return nullptr;
  if (share->kept_for == this) [[likely]]
    return static_cast<magazine*>(share->kept);
  // order: relaxed  only compared with
  const auto* const workers = workers_.load(std::memory_order_relaxed);
  return workers != nullptr && workers->has(share) ? claim(*share) : nullptr;
}

TROUPE_NOINLINE buffer_pool::magazine* buffer_pool::claim(
    sched::waiting_operations::share& worker) noexcept {
  auto* const fresh = new (std::nothrow) magazine;
  if (fresh == nullptr) return nullptr;
  worker.kept_for = this;
  worker.kept = fresh;
  // order: relaxed  only linked
  fresh->next = magazines_.load(std::memory_order_relaxed);
  // order: release  publishes the magazine to readers of the count; pairs with leased/acquire
  while (!magazines_.compare_exchange_weak(fresh->next, fresh, std::memory_order_release,
                                           std::memory_order_relaxed)) {
  }
  return fresh;
}

void buffer_pool::count_own(magazine& own, std::int64_t change) noexcept {
  // order: relaxed (both)  a count that one thread writes
  std::int64_t sum = own.leased.load(std::memory_order_relaxed) + change;
  if (sum > counted_apart_max || sum < -counted_apart_max) [[unlikely]]
    count(std::exchange(sum, 0));
  own.leased.store(sum, std::memory_order_relaxed);
}

// order: relaxed (both)  counts
std::size_t buffer_pool::nearly_leased() noexcept {
  std::int64_t sum = leased_.load(std::memory_order_relaxed);
  if (const magazine* const mine = own()) sum += mine->leased.load(std::memory_order_relaxed);
  return static_cast<std::size_t>(std::max<std::int64_t>(sum, 0));
}

std::size_t buffer_pool::leased() const noexcept {
  // order: relaxed (both)  counts
  std::int64_t sum = leased_.load(std::memory_order_relaxed);
  // order: acquire  sees the complete magazine; pairs with claim/release
  for (const magazine* next = magazines_.load(std::memory_order_acquire); next != nullptr;
       next = next->next)
    sum += next->leased.load(std::memory_order_relaxed);
  return static_cast<std::size_t>(std::max<std::int64_t>(sum, 0));
}

// ---- leases ----

std::byte* buffer_pool::take() noexcept {
  magazine* const mine = own();
  if (mine != nullptr) count_own(*mine, 1);
  if (mine != nullptr && mine->free != nullptr) {
    --mine->kept;
    return reinterpret_cast<std::byte*>(std::exchange(mine->free, mine->free->next));
  }
  {
    const std::lock_guard lock(mutex_);
    if (free_one* block = free_) {
      free_ = block->next;
      --kept_;
      if (mine == nullptr) count(1);
      return reinterpret_cast<std::byte*>(block);
    }
  }
  std::byte* const buffer = make();
  if (buffer == nullptr) {
    if (mine != nullptr) count_own(*mine, -1);
    return nullptr;
  }
  if (mine != nullptr) return buffer;
  const std::lock_guard lock(mutex_);
  count(1);
  return buffer;
}

void buffer_pool::give(std::byte* data) noexcept {
  magazine* const mine = own();
  if (mine != nullptr) count_own(*mine, -1);
  if (mine != nullptr && mine->kept < own_max) {
    mine->free = ::new (data) free_one{mine->free};
    ++mine->kept;
    return;
  }
  bool kept = false, last = false;
  {
    const std::lock_guard lock(mutex_);
    if (mine == nullptr) count(-1);
    last = let_go_ && leased() == 0;
    kept = keep(data);
    if (!kept && kept_ < kept_max) {
      ++kept_;
      free_ = ::new (data) free_one{free_};
      kept = true;
    }
  }
  if (!kept) destroy(data);
  if (last) delete this;
}

void buffer_pool::let_go() noexcept {
  bool last = false;
  {
    const std::lock_guard lock(mutex_);
    let_go_ = true;
    workers_.store(nullptr, std::memory_order_relaxed);  // order: relaxed  as own
    last = leased() == 0;
  }
  if (last) delete this;
}

}  // namespace io
}  // namespace troupe
