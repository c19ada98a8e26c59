// cell: what the runtime keeps of an actor that has nothing to do: one word for its mailbox, its
// type and its counts. The object follows. 24 bytes on 64-bit machines.
//
// Everything else, the mail list and the scheduling state, is an activation that the actor has only
// while it is active (src/actor/mailbox/activation.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>

#include "troupe/sched/message.hpp"

namespace troupe::actor {

using sched::message;

class actor_system;
struct activation;

// What differs between actor classes. One constant for each.
struct cell_type {
  constexpr cell_type(std::size_t object_bytes, std::size_t object_alignment,
                      void (*destroys)(void*) noexcept, const char* called, bool is_reentrant,
                      bool is_adopted = false) noexcept;

  // Where the object lies in a slot with room for `extra` bytes between it and the cell, and how
  // large that slot is. A slot of a multiple of the alignment begins that far behind an aligned
  // place (memory/slot_space.hpp).
  static constexpr std::size_t slots_begin = 64;
  constexpr std::size_t offset_behind(std::size_t extra) const noexcept;
  constexpr std::size_t slot_bytes_behind(std::size_t extra) const noexcept {
    return rounded_up(offset_behind(extra) + (adopted ? 0 : bytes));
  }
  constexpr std::size_t rounded_up(std::size_t size) const noexcept {
    return (size + alignment - 1) & ~(alignment - 1);
  }

  std::size_t bytes;      // sizeof(T)
  std::size_t alignment;  // alignof(T)
  void (*destroy)(void* object) noexcept;
  const char* name;
  bool reentrant;  // several calls of its coroutine handlers may be suspended at a time
  bool adopted;    // the object lies elsewhere: it was given to activate()
  std::size_t offset, slot_bytes;  // of most, which have nothing in between
};

// The count of refs to a cell, and whether its last ref has gone.
// Transitions: add n -> n+1; drop n -> n-1, but 1 -> retiring 0 (the caller tells the actor so,
// once); revive: retiring n -> n for n > 0; make_orphan: the runtime has gone. Word:
// std::atomic<std::uint32_t>, or what a model has in its place (docs/protocols/unreferenced.md).
template <class Word>
class basic_ref_state {
 public:
  enum class dropped : std::uint8_t { others_left, last, orphan };

  // True when the cell is an orphan: the caller counts it.
  bool add() noexcept {
    // order: relaxed  the caller holds a ref already
    return (bits_.fetch_add(1, std::memory_order_relaxed) & orphaned) != 0;
  }

  dropped drop() noexcept {
    // order: relaxed  only compared
    std::uint32_t seen = bits_.load(std::memory_order_relaxed);
    for (;;) {
      const bool last = seen == 1;
      // order: acq_rel  what the holder sent is seen by whoever sees the count without it: pairs
      // with revive; an orphan's holder sees the system's end: pairs with make_orphan
      if (bits_.compare_exchange_weak(seen, last ? retiring : seen - 1, std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
        if ((seen & orphaned) != 0) return dropped::orphan;
        return last ? dropped::last : dropped::others_left;
      }
    }
  }

  // As drop() that returns `others_left`. False, and nothing done, when it would return anything
  // else.
  bool drop_one_of_many() noexcept {
    // order: relaxed  only compared
    std::uint32_t seen = bits_.load(std::memory_order_relaxed);
    while (seen != 1 && (seen & orphaned) == 0) {
      // order: release  as drop; who is not the last touches the cell no more
      if (bits_.compare_exchange_weak(seen, seen - 1, std::memory_order_release,
                                      std::memory_order_relaxed))
        return true;
    }
    return false;
  }

  // As drop() that returns `last`, by plain stores: for a caller that holds the only ref while
  // nobody can make another one. False, and nothing done, when it is not the only one.
  bool drop_only() noexcept {
    if (!is_only()) return false;
    // order: relaxed  nobody else can look before the worker's lock, or the actor's end, publishes
    // it
    bits_.store(retiring, std::memory_order_relaxed);
    return true;
  }

  // Whether the caller's is the only one; nobody else can make another one then.
  bool is_only() const noexcept {
    // order: acquire  sees what former holders sent; pairs with drop/acq_rel
    return bits_.load(std::memory_order_acquire) == 1;
  }

  // The actor was told that its last ref went. True when somebody holds one again (it took one to
  // itself and sent it away): the next last one tells anew. False when nobody does; what former
  // holders sent is seen then.
  bool revive() noexcept {
    // order: acquire  sees what former holders sent; pairs with drop/acq_rel
    std::uint32_t seen = bits_.load(std::memory_order_acquire);
    while ((seen & count_mask) != 0) {
      // order: acquire  as above, when the count has come to zero meanwhile
      if (bits_.compare_exchange_weak(seen, seen & ~retiring, std::memory_order_acquire,
                                      std::memory_order_acquire))
        return true;
    }
    return false;
  }

  // The same when there are two, both of which the caller answers for.
  bool is_only_own_and_call() const noexcept {
    // order: acquire  as above
    return bits_.load(std::memory_order_acquire) == 2;
  }

  // Makes the cell an orphan. How many refs are left.
  std::uint32_t make_orphan() noexcept {
    // order: acq_rel  whoever drops later sees the system's end
    return bits_.fetch_or(orphaned, std::memory_order_acq_rel) & count_mask;
  }

 private:
  static constexpr std::uint32_t retiring = 1u << 30, orphaned = 1u << 31,
                                 count_mask = retiring - 1;
  Word bits_{1};
};
using ref_state = basic_ref_state<std::atomic<std::uint32_t>>;

struct cell {
  enum flag : std::uint8_t {
    constructed = 1,  // the object is constructed
    stopped = 2,      // the object is gone; messages become dead letters
    guards = 4,       // messages wait for predicates over its state (src/actor/mailbox/guards.hpp)
    // its handlers were so when a turn last looked at the clock (src/actor/turn/turn.cpp)
    quick = 8,
    slow = 16,  // they were not; neither of the two: nobody has looked yet
    has_extras =
        32,  // what few actors have lies in front of the object (src/actor/lifetime/extras.hpp)
    cancels = 64,     // it is being stopped: no turn of it suspends any more
    ends_soon = 128,  // and it ends with the turn that is suspended
  };

  std::atomic<std::uintptr_t> word{0};  // the mailbox (src/actor/mailbox/mailbox.hpp)
  const cell_type* type;                // null in a free slot
  ref_state refs;
  // 0: the pool; else an index of the system's; and whether the mailbox is bounded
  const std::uint16_t executor;
  std::uint8_t offset;     // of the object, in units of 8 bytes
  std::uint8_t flags = 0;  // changed in the actor's turns only

  static constexpr std::uint16_t bounded = 1u << 15;
  std::uint16_t lives_on() const noexcept {
    return executor & static_cast<std::uint16_t>(~bounded);
  }
  bool is_bounded() const noexcept { return (executor & bounded) != 0; }

  cell(const cell_type& of, std::uint16_t where, std::uint8_t object_offset) noexcept
      : type(&of), executor(where), offset(object_offset) {}

  void* object() noexcept { return reinterpret_cast<std::byte*>(this) + offset * 8u; }
  bool alive() const noexcept { return (flags & (constructed | stopped)) == constructed; }
};

static_assert(sizeof(cell) <= 24);

// An actor, and the part of its object that messages are for. One word: the address of the cell,
// which is above 0 as a signed number; 0 for none; and with the sign bit set for a part that is not
// where the object begins, or of a class that is reentrant where the actor's is not, or the other
// way round: then the distance lies in the bits above an address.
class address {
 public:
  static constexpr std::size_t offset_max = (std::size_t{1} << 15) - 1;
  constexpr address() noexcept = default;
  explicit address(cell* of) noexcept : bits_(reinterpret_cast<std::uintptr_t>(of)) {}
  address(cell* of, std::size_t offset) noexcept
      : bits_(reinterpret_cast<std::uintptr_t>(of) | (std::uintptr_t{offset} << offset_shift) |
              (std::uintptr_t{1} << 63)) {}

  bool refers() const noexcept { return bits_ != 0; }
  bool is_plain() const noexcept { return static_cast<std::intptr_t>(bits_) > 0; }
  // Where the object begins; only if it is plain.
  cell& plain() const noexcept { return *reinterpret_cast<cell*>(bits_); }
  cell* get() const noexcept {
    return static_cast<std::intptr_t>(bits_) >= 0
               ? reinterpret_cast<cell*>(bits_)
               : reinterpret_cast<cell*>(bits_ & ((std::uintptr_t{1} << offset_shift) - 1));
  }
  std::size_t offset() const noexcept {
    return static_cast<std::intptr_t>(bits_) >= 0 ? 0 : (bits_ >> offset_shift) & offset_max;
  }

  friend bool operator==(const address&, const address&) noexcept = default;

 private:
  static_assert(
      sizeof(void*) == 8,
      "troupe: an address of less than 48 bits and 16 more for what a ref says beside it");
  static constexpr unsigned offset_shift = 48;
  std::uintptr_t bits_ = 0;
};

// Of the actor whose handler the calling thread runs.
bool current_is_reentrant() noexcept;

constexpr std::size_t cell_type::offset_behind(std::size_t extra) const noexcept {
  return rounded_up(slots_begin + sizeof(cell) + extra) - slots_begin;
}

constexpr cell_type::cell_type(std::size_t object_bytes, std::size_t object_alignment,
                               void (*destroys)(void*) noexcept, const char* called,
                               bool is_reentrant, bool is_adopted) noexcept
    : bytes(object_bytes),
      alignment(object_alignment),
      destroy(destroys),
      name(called),
      reentrant(is_reentrant),
      adopted(is_adopted),
      offset(offset_behind(0)),
      slot_bytes(slot_bytes_behind(0)) {}

// Puts a message into the actor's mailbox, and wakes the actor if it is inactive. Takes the
// message, also when it throws (std::bad_alloc). Any thread. Never waits for a handler.
void deliver(cell& to, message& mail);
// The same for one that has the sender's ref to the actor.
void deliver_with_its_ref(cell& to, message& mail);

// The same for one that overtakes ordinary messages, and reaches an actor whose turn is suspended.
void deliver_urgent(cell& to, message& mail);

// For a bounded mailbox: takes room for a message that is then delivered. False when there is none.
bool take_permit(cell& to) noexcept;
void give_room_back(cell& to) noexcept;
// deliver() of a message for which room was taken.
void deliver_into_room(cell& to, message& mail);
// There was none: throws mailbox_full, or makes a dead letter of it.
void refuse_full(cell& to, message& mail);
std::exception_ptr full_error(const cell& to);

// Which actor it is, for people; from 1 on. Any thread.
std::uint64_t id_of(const cell& actor) noexcept;

// Counts of refs; any thread.
void add_ref(cell& to) noexcept;
void drop_ref(cell& to) noexcept;

// The actor whose handler (or constructor) the calling thread runs; null outside of one.
cell* current_cell() noexcept;

}  // namespace troupe::actor
