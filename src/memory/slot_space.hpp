// slot_space: slots for objects that must be found again: all actors of one runtime.
//
// Slots of one size lie together in slabs of 64 KiB. The head of a slab names its owner:
// owner_of(pointer) is one mask and one load. An object that is too large for a slab has a block of
// its own, which begins like a slab. for_each visits every slot in use; with it a runtime finds the
// actors that only refer to each other.
//
// Threads: any. A worker passes its own magazines; other threads share a locked set.
// Limits: the memory of slabs stays with the space, for slots of the same size. Blocks of their own
// come from malloc and return to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "memory/slab_index.hpp"
#include "troupe/base/intrusive_list.hpp"
#include "troupe/memory/magazine.hpp"

namespace troupe::memory {

inline constexpr std::size_t slab_bytes = 64 * 1024;

// The second word of a slot is null if the slot is free.
struct slot_head {
  void* first;
  const void* in_use;
  TROUPE_INLINE static slot_head& of(void* slot) noexcept { return *static_cast<slot_head*>(slot); }
};

struct slab {
  void* owner;
  std::size_t slot_bytes;
  std::size_t size_class;  // slot_space::alone: one slot in a block of its own
  std::size_t carved;      // slots given out at least once
  base::list_link<slab> link;
  // two slabs of a space never have the same number
  std::uint64_t number;
  // 2^32 / slot_bytes, rounded up, so that a number of a slot needs no division; 0: one slot
  std::uint64_t slots_a_byte;

  static slab& of(const void* slot) noexcept {
    return *reinterpret_cast<slab*>(reinterpret_cast<std::uintptr_t>(slot) & ~(slab_bytes - 1));
  }
};

// The slabs in the order in which they were made.
using slab_list = base::intrusive_list<slab, &slab::link>;

class slot_space {
 public:
  // Bytes from the head of the slab, which is aligned to its size, to the first slot.
  static constexpr std::size_t first_slot = 64;
  static constexpr std::size_t small_step = 8, small_max = 256, middle_step = 64, middle_max = 4096;
  static constexpr std::size_t large_step = 1024, large_max = 16 * 1024;
  static constexpr std::size_t slots_max = 4096;  // in a slab: no slot is smaller than its head
  static_assert(slab_bytes / sizeof(slot_head) <= slots_max);
  static constexpr std::size_t small_classes = small_max / small_step;
  // The classes of which a worker keeps slots in its own magazines. Of larger slots each magazine
  // would hold megabytes.
  static constexpr std::size_t own_classes = small_classes + (middle_max - small_max) / middle_step;
  static constexpr std::size_t classes = own_classes + (large_max - middle_max) / large_step;
  static constexpr std::size_t alone = classes;
  using magazines = std::array<magazine, own_classes>;
  static_assert(sizeof(slab) <= first_slot);

  explicit slot_space(void* owner) : owner_(owner) {}
  slot_space(const slot_space&) = delete;
  slot_space& operator=(const slot_space&) = delete;
  ~slot_space();

  // Returns a slot of at least `bytes`, aligned to 8. When `bytes` is a multiple of a greater power
  // of two (up to slab_bytes), the slot begins first_slot bytes behind a multiple of that. `in_use`
  // is null, and the caller sets it. `mine` may be null. Throws std::bad_alloc.
  TROUPE_INLINE void* allocate(std::size_t bytes, magazines* mine) {
    if (mine != nullptr && bytes <= middle_max) [[likely]] {
      if (free_block* slot = (*mine)[class_of(bytes)].take()) [[likely]]
        return slot;
    }
    return allocate_slowly(bytes, mine);
  }

  TROUPE_INLINE void free(void* slot, magazines* mine) noexcept {
    slot_head::of(slot).in_use = nullptr;
    const std::size_t index = slab::of(slot).size_class;
    if (mine == nullptr || index >= own_classes) return free_slowly(slot);
    if (free_block* surplus = (*mine)[index].give(static_cast<free_block*>(slot))) [[unlikely]]
      store(index, surplus);
  }

  // Returns a number that no other slot in use of the space has. Numbers begin with 1, and are
  // dense for slots of one size.
  static std::uint64_t number_of(const void* slot) noexcept;
  // The lowest 32 bits of it, in a few instructions: for records of turns.
  TROUPE_INLINE static std::uint32_t low_number_of(const void* slot) noexcept {
    const slab& home = slab::of(slot);
    const std::size_t offset =
        (reinterpret_cast<std::uintptr_t>(slot) & (slab_bytes - 1)) - first_slot;
    return static_cast<std::uint32_t>(home.number * slots_max + (offset * home.slots_a_byte >> 32) +
                                      1);
  }
  // The same for a slot of a slab of which `home` may be a copy.
  static std::uint64_t number_in(const slab& home, const void* slot) noexcept;
  // The same for an address that may be freed already, or was never a slot. Returns 0 when it lies
  // in none of the space's slabs.
  std::uint64_t find_number(const void* slot) const noexcept;
  // The slabs whose number is at least that, by number, at most `most` of them. Slabs of one slot
  // may be freed at any time, others stay as long as the space. Throws std::bad_alloc.
  using numbered_slab = slab_index::entry;
  std::vector<numbered_slab> slabs_from(std::uint64_t number, std::size_t most) const;

  // Calls `visit` for every slot in use. Other threads must not allocate or free during the call.
  // `visit` itself may allocate; such slots may be visited or not. It may free only slots that it
  // has allocated.
  void for_each(const std::function<void(void*)>& visit);

 private:
  friend struct debugger_view;  // src/runtime/debugger_table.cpp
  struct size_class {
    std::mutex mutex;
    magazine shared;
    std::vector<free_block*> full;
    std::byte* fresh = nullptr;  // the unused rest of the newest slab
    std::size_t fresh_left = 0;  // slots
    slab* newest = nullptr;

    // Keeps a full batch. When memory has run out, its slots are not used again, and are freed with
    // their slabs.
    void keep(free_block* batch) noexcept;
  };

  static constexpr std::size_t class_of(std::size_t bytes) noexcept {
    if (bytes < sizeof(slot_head)) bytes = sizeof(slot_head);
    if (bytes <= small_max) return (bytes + small_step - 1) / small_step - 1;
    if (bytes <= middle_max)
      return small_classes + (bytes - small_max + middle_step - 1) / middle_step - 1;
    return own_classes + (bytes - middle_max + large_step - 1) / large_step - 1;
  }
  void* allocate_slowly(std::size_t bytes, magazines* mine);
  void free_slowly(void* slot) noexcept;
  void store(std::size_t size_class, free_block* surplus) noexcept;
  static std::size_t bytes_of(std::size_t size_class) noexcept;
  free_block* refill(size_class& from, std::size_t index, std::size_t at_most, std::size_t& got);
  slab* new_slab(std::size_t size_class);
  void* allocate_alone(std::size_t bytes);

  void* owner_;
  std::array<size_class, classes> classes_;
  mutable std::mutex slabs_mutex_;
  std::uint64_t slabs_made_ = 0;
  // All of both lists: a search touches no slab, so that it holds the mutex for a few us.
  slab_index numbered_;
  slab_list slabs_;  // the slabs of one chunk are neighbours
  slab_list alone_;
  std::byte* chunk_ = nullptr;  // the unused rest of the newest chunk
  std::size_t chunk_left_ = 0;  // bytes
  std::size_t chunks_ = 0;
};

}  // namespace troupe::memory
