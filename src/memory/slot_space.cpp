#include "memory/slot_space.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "memory/chunk.hpp"

namespace troupe::memory {
namespace {

free_block* as_block(void* slot) noexcept { return static_cast<free_block*>(slot); }

std::uintptr_t chunk_of(const slab* member) noexcept {
  return reinterpret_cast<std::uintptr_t>(member) / chunk_bytes;
}

}  // namespace

void slot_space::size_class::keep(free_block* batch) noexcept {
  try {
    full.push_back(batch);
  } catch (const std::bad_alloc&) {
    // The comment in the header describes that case.
  }
}

slot_space::~slot_space() {
  while (slab* const current = alone_.pop_front()) std::free(current);
  for (slab* current = slabs_.first(); current != nullptr;) {
    slab* const chunk = current;  // its first slab
    while (current != nullptr && chunk_of(current) == chunk_of(chunk))
      current = slab_list::next(*current);
    unmap_chunk(chunk);
  }
}

std::size_t slot_space::bytes_of(std::size_t size_class) noexcept {
  if (size_class < small_classes) return (size_class + 1) * small_step;
  if (size_class < own_classes) return small_max + (size_class - small_classes + 1) * middle_step;
  return middle_max + (size_class - own_classes + 1) * large_step;
}

void* slot_space::allocate_slowly(std::size_t bytes, magazines* mine) {
  if (bytes > large_max) return allocate_alone(bytes);
  const std::size_t index = class_of(bytes);
  size_class& from = classes_[index];
  std::lock_guard lock(from.mutex);
  magazine& own = mine != nullptr && index < own_classes ? (*mine)[index] : from.shared;
  if (free_block* slot = own.take()) return slot;
  std::size_t got = 0;
  free_block* slots = refill(from, index, magazine::batch, got);
  own.refill(slots, got);
  return own.take();
}

void slot_space::free_slowly(void* slot) noexcept {
  slab& home = slab::of(slot);
  if (home.size_class == alone) {
    {
      std::lock_guard lock(slabs_mutex_);
      alone_.remove(home);
      numbered_.remove(home.number);
    }
    return std::free(&home);
  }
  size_class& list = classes_[home.size_class];
  std::lock_guard lock(list.mutex);
  if (free_block* surplus = list.shared.give(as_block(slot))) list.keep(surplus);
}

void slot_space::store(std::size_t size_class, free_block* surplus) noexcept {
  std::lock_guard lock(classes_[size_class].mutex);
  classes_[size_class].keep(surplus);
}

// Returns a list of free slots, at most a batch. The caller holds the mutex of the class.
free_block* slot_space::refill(size_class& from, std::size_t index, std::size_t at_most,
                               std::size_t& got) {
  if (!from.full.empty()) {
    free_block* slots = from.full.back();
    from.full.pop_back();
    got = magazine::batch;
    return slots;
  }
  const std::size_t bytes = bytes_of(index);
  if (from.fresh_left == 0) {
    from.newest = new_slab(index);
    from.fresh = reinterpret_cast<std::byte*>(from.newest) + first_slot;
    from.fresh_left = (slab_bytes - first_slot) / bytes;
  }
  got = std::min(at_most, from.fresh_left);
  free_block* slots = nullptr;
  for (std::size_t i = got; i-- > 0;) {
    void* slot = from.fresh + i * bytes;
    slot_head::of(slot).in_use = nullptr;
    as_block(slot)->next = slots;
    slots = as_block(slot);
  }
  from.fresh += got * bytes;
  from.fresh_left -= got;
  from.newest->carved += got;
  return slots;
}

slab* slot_space::new_slab(std::size_t size_class) {
  std::lock_guard lock(slabs_mutex_);
  if (chunk_left_ == 0) {
    chunk_ = static_cast<std::byte*>(map_chunk(chunks_++));
    chunk_left_ = chunk_bytes;
  }
  const std::size_t bytes = bytes_of(size_class);
  const std::uint64_t slots_a_byte = ((std::uint64_t{1} << 32) + bytes - 1) / bytes;
  auto* fresh = ::new (chunk_) slab{owner_, bytes, size_class, 0, {}, slabs_made_, slots_a_byte};
  numbered_.add(slabs_made_, fresh);
  ++slabs_made_;
  chunk_ += slab_bytes;
  chunk_left_ -= slab_bytes;
  slabs_.push_back(*fresh);
  return fresh;
}

void* slot_space::allocate_alone(std::size_t bytes) {
  void* memory = nullptr;
  // The size is not rounded up: malloc can use the bytes behind the slot.
  if (::posix_memalign(&memory, slab_bytes, first_slot + bytes) != 0) throw std::bad_alloc();
  auto* fresh = ::new (memory) slab{owner_, bytes, alone, 1, {}, 0, 0};
  void* slot = reinterpret_cast<std::byte*>(fresh) + first_slot;
  slot_head::of(slot).in_use = nullptr;
  std::lock_guard lock(slabs_mutex_);
  try {
    numbered_.add(slabs_made_, fresh);
  } catch (const std::bad_alloc&) {
    std::free(fresh);
    throw;
  }
  fresh->number = slabs_made_++;
  alone_.push_back(*fresh);
  return slot;
}

std::uint64_t slot_space::number_of(const void* slot) noexcept {
  return number_in(slab::of(slot), slot);
}

std::uint64_t slot_space::number_in(const slab& home, const void* slot) noexcept {
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(slot) % slab_bytes;
  return home.number * slots_max +
         (home.size_class == alone ? 0 : (offset - first_slot) / home.slot_bytes) + 1;
}

std::uint64_t slot_space::find_number(const void* slot) const noexcept {
  const slab* const home = &slab::of(slot);
  std::lock_guard lock(slabs_mutex_);
  return numbered_.contains(home) ? number_of(slot) : 0;
}

std::vector<slot_space::numbered_slab> slot_space::slabs_from(std::uint64_t number,
                                                              std::size_t most) const {
  std::vector<numbered_slab> found;
  found.reserve(most);
  std::lock_guard lock(slabs_mutex_);
  numbered_.append_from(number, most, found);
  return found;
}

void slot_space::for_each(const std::function<void(void*)>& visit) {
  for (const slab_list* all : {&slabs_, &alone_}) {
    for (slab& visited : *all) {
      for (std::size_t i = 0; i < visited.carved; ++i) {
        void* slot = reinterpret_cast<std::byte*>(&visited) + first_slot + i * visited.slot_bytes;
        if (slot_head::of(slot).in_use != nullptr) visit(slot);
      }
    }
  }
}

}  // namespace troupe::memory
