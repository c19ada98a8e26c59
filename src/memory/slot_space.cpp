#include "memory/slot_space.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "memory/chunk.hpp"

namespace troupe::memory {
namespace {

free_block* as_block(void* slot) noexcept { return static_cast<free_block*>(slot); }

}  // namespace

slot_space::~slot_space() {
  for (slab* one : alone_) std::free(one);
  for (void* chunk : chunks_) unmap_chunk(chunk);
}

std::size_t slot_space::bytes_of(std::size_t size_class) noexcept {
  constexpr std::size_t small_classes = small_max / small_step;
  if (size_class < small_classes) return (size_class + 1) * small_step;
  return small_max + (size_class - small_classes + 1) * middle_step;
}

void* slot_space::allocate_slowly(std::size_t bytes, magazines* mine) {
  if (bytes > middle_max) return allocate_alone(bytes);
  const std::size_t index = class_of(bytes);
  size_class& from = classes_[index];
  std::lock_guard lock(from.mutex);
  magazine& own = mine != nullptr ? (*mine)[index] : from.shared;
  if (free_block* slot = own.take()) return slot;
  std::size_t got = 0;
  free_block* slots = refill(from, index, magazine::batch, got);
  own.refill(slots, got);
  return own.take();
}

void slot_space::free_slowly(void* slot) noexcept {
  slab& home = slab::of(slot);
  if (home.slot_bytes > middle_max) {
    std::lock_guard lock(slabs_mutex_);
    alone_.erase(std::find(alone_.begin(), alone_.end(), &home));
    std::free(&home);
    return;
  }
  size_class& to = classes_[class_of(home.slot_bytes)];
  std::lock_guard lock(to.mutex);
  if (free_block* surplus = to.shared.give(as_block(slot))) to.full.push_back(surplus);
}

void slot_space::store(std::size_t size_class, free_block* surplus) noexcept {
  std::lock_guard lock(classes_[size_class].mutex);
  classes_[size_class].full.push_back(surplus);
}

// A list of free slots, at most a batch. The class is locked.
free_block* slot_space::refill(size_class& from, std::size_t index, std::size_t at_most, std::size_t& got) {
  if (!from.full.empty()) {
    free_block* slots = from.full.back();
    from.full.pop_back();
    got = magazine::batch;
    return slots;
  }
  const std::size_t bytes = bytes_of(index);
  if (from.fresh_left == 0) {
    from.newest = new_slab(bytes);
    from.fresh = reinterpret_cast<std::byte*>(from.newest) + first_slot;
    from.fresh_left = (slab_bytes - first_slot) / bytes;
  }
  got = std::min(at_most, from.fresh_left);
  free_block* slots = nullptr;
  for (std::size_t i = got; i-- > 0;) {
    void* slot = from.fresh + i * bytes;
    static_cast<slot_head*>(slot)->in_use = nullptr;
    as_block(slot)->next = slots;
    slots = as_block(slot);
  }
  from.fresh += got * bytes;
  from.fresh_left -= got;
  from.newest->carved += got;
  return slots;
}

slab* slot_space::new_slab(std::size_t slot_bytes) {
  std::lock_guard lock(slabs_mutex_);
  if (chunk_left_ == 0) {
    chunks_.push_back(map_chunk());
    chunk_left_ = chunk_bytes;
  }
  auto* memory = static_cast<std::byte*>(chunks_.back()) + (chunk_bytes - chunk_left_);
  chunk_left_ -= slab_bytes;
  auto* made = ::new (memory) slab{owner_, slot_bytes, 0, slab_bytes};
  slabs_.push_back(made);
  return made;
}

void* slot_space::allocate_alone(std::size_t bytes) {
  const std::size_t total = (first_slot + bytes + slab_bytes - 1) / slab_bytes * slab_bytes;
  void* memory = std::aligned_alloc(slab_bytes, total);
  if (memory == nullptr) throw std::bad_alloc();
  auto* made = ::new (memory) slab{owner_, bytes, 1, total};
  void* slot = static_cast<std::byte*>(memory) + first_slot;
  static_cast<slot_head*>(slot)->in_use = nullptr;
  std::lock_guard lock(slabs_mutex_);
  alone_.push_back(made);
  return slot;
}

void slot_space::for_each(const std::function<void(void*)>& visit) {
  const auto visit_slab = [&](slab& one) {
    for (std::size_t i = 0; i < one.carved; ++i) {
      void* slot = reinterpret_cast<std::byte*>(&one) + first_slot + i * one.slot_bytes;
      if (static_cast<slot_head*>(slot)->in_use != nullptr) visit(slot);
    }
  };
  for (std::size_t i = 0; i < slabs_.size(); ++i) visit_slab(*slabs_[i]);
  for (std::size_t i = 0; i < alone_.size(); ++i) visit_slab(*alone_[i]);
}

}  // namespace troupe::memory
