#include "actor/scan/actor_scan.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <span>

#include "actor/counting/last_handler.hpp"
#include "actor/mailbox/activation.hpp"
#include "actor/state/optional_state.hpp"
#include "actor/state/supervision_state.hpp"
#include "actor/system/actor_system.hpp"
#include "memory/slot_space.hpp"

namespace troupe::actor {
namespace {

using memory::slab;
using memory::slot_space;

constinit std::atomic<std::uint64_t> copies{0};

// Copies memory of this process, which other threads may be changing or freeing. False: it was
// freed.
bool copy(const void* from, std::span<std::byte> destination) noexcept {
  copies.fetch_add(1, std::memory_order_relaxed);  // order: relaxed  a statistic
  const iovec target{destination.data(), destination.size()};
  const iovec source{const_cast<void*>(from), destination.size()};
  return ::process_vm_readv(::getpid(), &target, 1, &source, 1, 0) ==
         static_cast<ssize_t>(destination.size());
}

// Copied memory, as the object that it is a copy of: only for members that are plain data.
template <class T>
const T& as(const std::byte* copied) noexcept {
  return *static_cast<const T*>(static_cast<const void*>(copied));
}

constexpr std::uint32_t count_max = 10'000;  // about 2 ms
// The size of a slot in a block of its own: a cell, and the bytes between the cell and the object.
constexpr std::size_t alone_bytes = 2048;

// Follows the mail that its owner has not collected yet, newest first, to the activation behind it.
// A turn may free these messages meanwhile: then the walk ends at whatever is there instead.
// Returns the mailbox word of the activation, or a different word if it was not reached.
std::uintptr_t skip_new_mail(std::uintptr_t word, std::uint32_t& count) noexcept {
  while (!mailbox::is_activation(word) && word > mailbox::tags && count < count_max) {
    count += (word & mailbox::urgent_tag) == 0 ? 1 : 0;
    std::array<std::byte, sizeof word> next;  // a message begins with its link
    if (!copy(reinterpret_cast<const void*>(word & ~mailbox::tags), next)) return 0;
    word = std::bit_cast<std::uintptr_t>(next);
  }
  return word;
}

// An activation may have been freed since, or be another actor's by now.
seen_actor look_at(const cell& copied, const void* actor, std::uint64_t id) noexcept {
  // order: relaxed  of a copy
  std::uintptr_t word = copied.word.load(std::memory_order_relaxed);
  seen_actor seen{id, copied.type, seen_state::inactive, 0, actor};
  if (word == mailbox::inactive) return seen;
  seen.state = mailbox::is_parked(word) ? seen_state::suspended : seen_state::active;
  word = skip_new_mail(word, seen.mail);
  seen.has_more = seen.mail == count_max;
  if (!mailbox::is_activation(word)) return seen;
  alignas(activation) std::array<std::byte, sizeof(activation)> bytes;
  if (!copy(&mailbox::as_activation(word), bytes)) return seen;
  const auto& active = as<activation>(bytes.data());
  if (active.actor != actor) return seen;
  seen.mail += active.length.get();
  if ((active.marks & activation::waits) != 0) seen.state = seen_state::suspended;
  return seen;
}

// Looks at the slots of one slab from `first` on. Returns the index at which `look` ended it;
// SIZE_MAX: at none.
std::size_t scan_slab(std::uint64_t number, const slab& home, std::size_t first, bool counted,
                      std::span<std::byte> bytes,
                      const std::function<bool(const seen_actor&)>& look) {
  constexpr std::size_t head = slot_space::first_slot;
  if (!copy(&home, bytes.first(head))) return SIZE_MAX;
  const slab copied = as<slab>(bytes.data());
  if (copied.number != number || copied.slot_bytes < sizeof(cell)) return SIZE_MAX;
  const std::size_t used = copied.size_class == slot_space::alone
                               ? head + std::min(copied.slot_bytes, alone_bytes)
                               : std::min(bytes.size(), head + copied.carved * copied.slot_bytes);
  if (!copy(&home, bytes.first(used))) return SIZE_MAX;
  for (std::size_t i = first, at = head + first * copied.slot_bytes; at + sizeof(cell) <= used;
       ++i, at += copied.slot_bytes) {
    const auto& actor = as<cell>(bytes.data() + at);
    if (actor.type == nullptr || (actor.flags & cell::stopped) != 0) continue;
    const void* const where = reinterpret_cast<const std::byte*>(&home) + at;
    seen_actor seen = look_at(actor, where, number * slot_space::slots_max + i + 1);
    if (has_optional_state(actor) && at + sizeof(cell) + sizeof(optional_state) <= used)
      seen.supervision = as<optional_state>(bytes.data() + at + sizeof(cell)).supervision.get();
    const std::size_t last = at + last_offset(actor);
    if (counted && actor.offset != 0 && last + last_bytes <= used)
      seen.last = as<message::handler>(bytes.data() + last);
    if (!look(seen)) return i;
  }
  return SIZE_MAX;
}

}  // namespace

std::uint64_t scan_actors(const actor_system& system, std::uint64_t from,
                          const std::function<bool(const seen_actor&)>& look) {
  struct alignas(cell) room {
    std::byte bytes[memory::slab_bytes];
  };
  const auto copied = std::make_unique<room>();
  const std::uint64_t begin = from == 0 ? 0 : from - 1;
  const bool counted = system.counts != nullptr;
  constexpr std::size_t slabs_a_look = 64;
  for (std::uint64_t next = begin / slot_space::slots_max;;) {
    const auto slabs = system.slots.slabs_from(next, slabs_a_look);
    if (slabs.empty()) return 0;
    for (const auto& [number, home] : slabs) {
      const bool is_first = number == begin / slot_space::slots_max;
      const std::size_t first =
          is_first ? static_cast<std::size_t>(begin % slot_space::slots_max) : 0;
      const std::size_t at = scan_slab(number, *home, first, counted, copied->bytes, look);
      if (at != SIZE_MAX) return number * slot_space::slots_max + at + 1;
    }
    next = slabs.back().first + 1;
  }
}

const cell_type* find_type(const void* actor) noexcept {
  alignas(cell) std::array<std::byte, sizeof(cell)> bytes;
  return copy(actor, bytes) ? as<cell>(bytes.data()).type : nullptr;
}

namespace {

std::uint64_t id_of_parent(const actor_system& system, const void* parent) noexcept {
  const slab& home = slab::of(parent);
  alignas(slab) std::array<std::byte, sizeof(slab)> bytes;
  if (!copy(&home, bytes)) return 0;
  const slab& copied = as<slab>(bytes.data());
  const tasks::runtime_state& runtime = system;
  if (copied.owner != &runtime || copied.slot_bytes < sizeof(cell)) return 0;
  return slot_space::number_in(copied, parent);
}

}  // namespace

std::uint64_t parent_ids::find(const seen_actor& child) {
  if (child.supervision == nullptr) return 0;
  alignas(supervision_state) std::array<std::byte, sizeof(supervision_state)> state;
  if (!copy(child.supervision, state)) return 0;
  const void* const parent = as<supervision_state>(state.data()).parent;
  if (parent == nullptr) return 0;
  const auto [found, is_new] = known_.try_emplace(parent);
  if (is_new) found->second = id_of_parent(system_, parent);
  return found->second;
}

// order: relaxed  a statistic
std::uint64_t count_copies() noexcept { return copies.load(std::memory_order_relaxed); }

}  // namespace troupe::actor
