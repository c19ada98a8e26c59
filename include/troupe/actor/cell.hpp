// cell: the state that the runtime keeps for an inactive actor: one word for its mailbox, its type
// and its counts. The actor's object follows the cell. 24 bytes on 64-bit machines.
//
// Everything else, such as the list of mail and the scheduling state, is in an activation, which
// the actor has only while it is active (src/actor/mailbox/activation.hpp).
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>

#include "troupe/sched/message.hpp"

namespace troupe::actor {

using sched::message;

class actor_system;
struct activation;

// The properties of an actor class. There is one constant for each class.
struct cell_type {
  constexpr cell_type(std::size_t object_bytes, std::size_t object_alignment,
                      void (*destroys)(void*) noexcept, const char* called, bool is_reentrant,
                      bool blocks, bool is_adopted = false) noexcept;

  // Where the object lies in a slot that has `extra` bytes between the cell and the object, and how
  // large that slot is. A slot whose size is a multiple of the alignment begins `slots_begin` bytes
  // behind an aligned address (memory/slot_space.hpp).
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
  bool reentrant;  // several calls of its coroutine handlers may be suspended at the same time
  bool may_block;  // its handlers are meant to hold their thread: no warning about them
  bool adopted;    // the object lies outside of the slot: it was passed to activate()
  // for the common cell, which has nothing between it and the object
  std::size_t offset, slot_bytes;
};

// The count of refs to a cell, and whether the last ref was dropped.
//
// Transitions
//   add          n -> n+1
//   drop         n -> n-1, but 1 -> retiring 0; the caller then notifies the actor, once
//   revive       retiring n -> n, for n > 0
//   make_orphan  sets the orphan bit, since the runtime has ended
//
// Word: std::atomic<std::uint32_t>, or its replacement in a model (docs/protocols/unreferenced.md).
template <class Word>
class basic_ref_state {
 public:
  enum class dropped : std::uint8_t { others_left, last, orphan };

  // Adds a ref. Returns true if the cell is an orphan; the caller then counts the ref with the
  // system.
  bool add() noexcept {
    // order: relaxed  the caller already holds a ref
    return (bits_.fetch_add(1, std::memory_order_relaxed) & orphaned) != 0;
  }

  dropped drop() noexcept {
    // order: relaxed  only compared
    std::uint32_t seen = bits_.load(std::memory_order_relaxed);
    for (;;) {
      const bool last = seen == 1;
      // order: acq_rel  a thread that sees the lower count sees the messages that this holder sent:
      // pairs with revive; the holder of an orphan sees the system's end: pairs with make_orphan
      if (bits_.compare_exchange_weak(seen, last ? retiring : seen - 1, std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
        if ((seen & orphaned) != 0) return dropped::orphan;
        return last ? dropped::last : dropped::others_left;
      }
    }
  }

  // Like a drop() that returns `others_left`. Returns false and does nothing if drop() would return
  // another value.
  bool drop_one_of_many() noexcept {
    // order: relaxed  only compared
    std::uint32_t seen = bits_.load(std::memory_order_relaxed);
    while (seen != 1 && (seen & orphaned) == 0) {
      // order: release  as drop; a holder that is not the last does not touch the cell afterwards
      if (bits_.compare_exchange_weak(seen, seen - 1, std::memory_order_release,
                                      std::memory_order_relaxed))
        return true;
    }
    return false;
  }

  // Like a drop() that returns `last`, by plain stores. For a caller that may hold the only ref,
  // while no other thread can make a new one. Returns false and does nothing if there are other
  // refs.
  bool drop_only() noexcept {
    if (!is_only()) return false;
    // order: relaxed  no other thread can read the word before the worker's lock, or the actor's
    // end, publishes it
    bits_.store(retiring, std::memory_order_relaxed);
    return true;
  }

  // Whether the caller holds the only ref; then no other thread can make a new one.
  bool is_only() const noexcept {
    // order: acquire  sees the messages of former holders; pairs with drop/acq_rel
    return bits_.load(std::memory_order_acquire) == 1;
  }

  // Called after the actor was notified that its last ref was dropped. Returns true if there is a
  // ref again (the actor sent away a ref to itself); the next drop of a last ref then notifies the
  // actor again. Returns false if there is no ref; the caller then sees the messages that former
  // holders sent.
  bool revive() noexcept {
    // order: acquire  sees the messages of former holders; pairs with drop/acq_rel
    std::uint32_t seen = bits_.load(std::memory_order_acquire);
    while ((seen & count_mask) != 0) {
      // order: acquire  as above, if the count has become zero meanwhile
      if (bits_.compare_exchange_weak(seen, seen & ~retiring, std::memory_order_acquire,
                                      std::memory_order_acquire))
        return true;
    }
    return false;
  }

  // As is_only(), for a caller that is responsible for two refs: its own, and the ref of a call.
  bool is_only_own_and_call() const noexcept {
    // order: acquire  as above
    return bits_.load(std::memory_order_acquire) == 2;
  }

  // Makes the cell an orphan, and returns how many refs exist.
  std::uint32_t make_orphan() noexcept {
    // order: acq_rel  a thread that drops a ref later sees the system's end
    return bits_.fetch_or(orphaned, std::memory_order_acq_rel) & count_mask;
  }

 private:
  static constexpr std::uint32_t retiring = 1u << 30, orphaned = 1u << 31,
                                 count_mask = retiring - 1;
  Word bits_{1};
};
using ref_state = basic_ref_state<std::atomic<std::uint32_t>>;

// The part of an actor that it has even while it is inactive. Thread: any thread uses the mailbox
// word and the refs; the thread that runs the actor's turn uses the flags; the other members are
// constant.
struct cell {
  enum flag : std::uint8_t {
    constructed = 1,  // the object is constructed
    stopped = 2,      // the object is destroyed; messages become dead letters
    // messages wait for predicates over the actor's state (src/actor/system/guard_table.hpp)
    guards = 4,
    // its handlers were quick when a turn last checked the clock (src/actor/turn/turn.cpp)
    quick = 8,
    slow = 16,  // its handlers were not quick; neither of the two flags: no turn has checked yet
    has_optional_state =
        32,           // members that few actors need lie before the object (optional_state.hpp)
    cancels = 64,     // the actor is being stopped: none of its turns suspends any more
    ends_soon = 128,  // the actor ends when its suspended turn has ended
  };

  std::atomic<std::uintptr_t> word{0};  // the mailbox (src/actor/mailbox/mailbox.hpp)
  const cell_type* type;                // null in a free slot
  ref_state refs;
  // 0: the pool; otherwise an index into the system's executors; the top bit is set if the mailbox
  // is bounded
  const std::uint16_t executor;
  std::uint8_t offset;     // of the object from the cell, in units of 8 bytes
  std::uint8_t flags = 0;  // changed only in the actor's turns

  static constexpr std::uint16_t bounded = 1u << 15;
  std::uint16_t lives_on() const noexcept {
    return executor & static_cast<std::uint16_t>(~bounded);
  }
  bool is_bounded() const noexcept { return (executor & bounded) != 0; }

  cell(const cell_type& cell_class, std::uint16_t where, std::uint8_t object_offset) noexcept
      : type(&cell_class), executor(where), offset(object_offset) {}

  void* object() noexcept { return reinterpret_cast<std::byte*>(this) + offset * 8u; }
  bool alive() const noexcept { return (flags & (constructed | stopped)) == constructed; }
};

static_assert(sizeof(cell) <= 24);

// An actor, and the part of its object that gets the messages, in one word. 0: no actor. Above 0 as
// a signed number: the address of the cell; the part begins where the object begins. With the sign
// bit set: the bits above the cell's address hold the part's distance from the beginning of the
// object. The third form is also used, with any distance, if the part's class is reentrant and the
// actor's class is not, or the other way round.
class address {
 public:
  static constexpr std::size_t offset_max = (std::size_t{1} << 15) - 1;
  constexpr address() noexcept = default;
  explicit address(cell* target) noexcept : bits_(reinterpret_cast<std::uintptr_t>(target)) {}
  address(cell* target, std::size_t offset) noexcept
      : bits_(reinterpret_cast<std::uintptr_t>(target) | (std::uintptr_t{offset} << offset_shift) |
              (std::uintptr_t{1} << 63)) {}

  bool refers() const noexcept { return bits_ != 0; }
  bool is_plain() const noexcept { return static_cast<std::intptr_t>(bits_) > 0; }
  // The cell; only for an address with is_plain(), whose part begins where the object begins.
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
      "troupe: a pointer must have 64 bits: 48 of an address and 16 that a ref keeps beside it");
  static constexpr unsigned offset_shift = 48;
  std::uintptr_t bits_ = 0;
};

// Whether the actor whose handler the calling thread runs is reentrant.
bool current_is_reentrant() noexcept;

constexpr std::size_t cell_type::offset_behind(std::size_t extra) const noexcept {
  return rounded_up(slots_begin + sizeof(cell) + extra) - slots_begin;
}

constexpr cell_type::cell_type(std::size_t object_bytes, std::size_t object_alignment,
                               void (*destroys)(void*) noexcept, const char* called,
                               bool is_reentrant, bool blocks, bool is_adopted) noexcept
    : bytes(object_bytes),
      alignment(object_alignment),
      destroy(destroys),
      name(called),
      reentrant(is_reentrant),
      may_block(blocks),
      adopted(is_adopted),
      offset(offset_behind(0)),
      slot_bytes(slot_bytes_behind(0)) {}

// Puts a message into the actor's mailbox, and wakes the actor if it is inactive. Never waits for a
// handler. Takes ownership of the message, even if it throws std::bad_alloc. Thread: any.
void deliver(cell& to, message& mail);
// The same for a `tell`: the message carries the sender's trace.
void deliver_told(cell& to, message& mail);
// The same for a message that holds the sender's ref to the actor.
void deliver_with_its_ref(cell& to, message& mail);

// The same for a message that overtakes ordinary messages, and that reaches even an actor whose
// turn is suspended.
void deliver_urgent(cell& to, message& mail);

// Reserves space in a bounded mailbox for one message, which the caller then delivers. Returns
// false if there is none.
bool take_permit(cell& to) noexcept;
// Returns reserved space that no message has used.
void give_permit_back(cell& to) noexcept;
// deliver_told() of a message for which space was reserved.
void deliver_with_permit(cell& to, message& mail);
// Refuses a message for which there was no space: by the mailbox's when_full, throws mailbox_full
// or turns the message into a dead letter.
void refuse_full(cell& to, message& mail);
// The mailbox_full error for this actor.
std::exception_ptr full_error(const cell& actor);

// The actor's number in texts for people, from 1 on. Thread: any.
std::uint64_t id_of(const cell& actor) noexcept;

// Change the count of refs. Thread: any.
void add_ref(cell& actor) noexcept;
void drop_ref(cell& actor) noexcept;

// The actor whose handler or constructor the calling thread runs; null outside of handlers and
// constructors.
cell* current_cell() noexcept;

}  // namespace troupe::actor
