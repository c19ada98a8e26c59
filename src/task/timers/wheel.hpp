// wheel: timers sorted by when they are due, in a hierarchy of slots.
//
// Level n has 64 slots of 64^n ticks each. A timer lies in the lowest level on which its time and
// the present differ; when the present reaches its slot the timer moves down, or is due. A tick is
// 65,536 ns, and eight levels reach as far as 63 bits of nanoseconds do: 292 years. Threads: the
// caller's lock guards all of it. Cost: insert and remove take a few instructions.
// Invariants
//   T1  a timer is due no earlier than its time, and at most one tick after it, if advance() is
//       called then.
//   T2  next_tick() is never later than the time of the first timer.
//   T3  while a walk pauses, `walk_next_` is null or a timer in the slot `walk_slot_`.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include "base/invariant.hpp"
#include "base/walks/is_listed.hpp"
#include "troupe/base/intrusive_list.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::tasks {

using timer_list = base::intrusive_list<timer, &timer::link>;

class wheel {
 public:
  static constexpr std::int64_t tick_ns = 65'536;
  static constexpr std::int64_t never = INT64_MAX;

  bool empty() const noexcept { return count_ == 0; }
  std::size_t count() const noexcept { return count_; }

  // The first tick that is not before the time.
  static std::int64_t tick_of(std::int64_t due_ns) noexcept {
    return due_ns <= 0 ? 0 : due_ns / tick_ns + (due_ns % tick_ns != 0 ? 1 : 0);
  }

  void insert(timer& entry) noexcept {
    entry.is = timer::state::armed;
    ++count_;
    put(entry);
    TROUPE_INVARIANT(next_tick() <= (entry.due_tick > now_ ? entry.due_tick : now_), "T2");
  }

  void remove(timer& entry) noexcept {
    --count_;
    take_out(entry);
    entry.is = timer::state::idle;
  }

  // When advance() has something to do next; `never` when no timer is armed. May come before any
  // timer is due.
  std::int64_t next_tick() const noexcept {
    if (!due_.empty()) return now_;
    for (unsigned level = 0; level < levels; ++level) {
      if (const std::int64_t at = next_tick_of(level); at != never) return at;
    }
    return never;
  }

  // Sets the present to `tick`; timers that are due by then can be taken.
  void advance(std::int64_t tick) noexcept {
    for (;;) {
      const std::int64_t at = next_of_slots();
      if (at > tick) break;
      now_ = at;
      cascade();
    }
    if (tick > now_) now_ = tick;
    TROUPE_INVARIANT(next_of_slots() > now_, "T1");
  }

  // Takes the next timer that is due, oldest slot first; null when there is none. The timer is out
  // of the wheel then.
  timer* take_due() noexcept {
    if (due_.empty()) return nullptr;
    TROUPE_INVARIANT(due_.first()->due_tick <= now_, "T1");
    return &take(*due_.first());
  }

  // Calls `look` for each timer until it returns false; `look` may remove the timer that it gets.
  template <class Look>
  void for_each(Look look) {
    if (!for_each_of(due_, look)) return;
    for (const timer_list& slot : slots_) {
      if (!for_each_of(slot, look)) return;
    }
  }

  // A walk through all timers in pieces, between which the caller may unlock: one at a time. It
  // finds each timer that is in the wheel from its beginning to its end; one that moves in the
  // wheel meanwhile may be found twice. Timers only move to slots before theirs. The walk therefore
  // goes from the last slot to the first, and ends with those that are due.
  void begin_walk() noexcept { enter_slot(due_slot - 1); }
  // Calls `look` for at most `most` timers. False when there are no more.
  template <class Look>
  bool walk(std::size_t most, Look look) {
    while (walk_next_ != nullptr || leave_slot()) {
      if (most-- == 0) return true;
      timer& entry = *walk_next_;
      TROUPE_INVARIANT(entry.slot == walk_slot_ && base::is_listed(list_of(walk_slot_), entry),
                       "T3");
      walk_next_ = timer_list::next(entry);
      look(entry);
    }
    return false;
  }
  void end_walk() noexcept { walk_next_ = nullptr; }

  // Takes any timer, whatever its time; null when there is none.
  timer* take_any() noexcept {
    if (!due_.empty()) return take_due();
    for (const timer_list& slot : slots_) {
      if (!slot.empty()) return &take(*slot.first());
    }
    return nullptr;
  }

 private:
  friend struct debugger_view;  // src/runtime/debugger_table.cpp
  template <class Look>
  static bool for_each_of(const timer_list& list, Look& look) {
    for (timer* next = list.first(); next != nullptr;) {
      timer& entry = *next;
      next = timer_list::next(entry);
      if (!look(entry)) return false;
    }
    return true;
  }

  static constexpr unsigned levels = 8, slot_bits = 6, slots = 1u << slot_bits;
  static constexpr std::uint16_t due_slot = levels * slots;

  timer& take(timer& entry) noexcept {
    --count_;
    take_out(entry);
    entry.is = timer::state::fired;
    return entry;
  }

  static unsigned shift_of(unsigned level) noexcept { return level * slot_bits; }

  void put(timer& entry) noexcept {
    if (entry.due_tick <= now_) return put_due(entry);
    const auto differ = static_cast<std::uint64_t>(entry.due_tick ^ now_);
    const auto level = static_cast<unsigned>(63 - std::countl_zero(differ)) / slot_bits;
    const auto slot = static_cast<unsigned>(entry.due_tick >> shift_of(level)) & (slots - 1);
    filled_[level] |= std::uint64_t{1} << slot;
    entry.slot = static_cast<std::uint16_t>(level * slots + slot);
    slots_[entry.slot].push_front(entry);
  }

  void put_due(timer& entry) noexcept {
    entry.is = timer::state::due;
    entry.slot = due_slot;
    due_.push_back(entry);
  }

  void take_out(timer& entry) noexcept {
    if (walk_next_ == &entry) walk_next_ = timer_list::next(entry);  // T3
    if (entry.slot == due_slot) return due_.remove(entry);
    timer_list& from = slots_[entry.slot];
    from.remove(entry);
    if (from.empty()) filled_[entry.slot / slots] &= ~(std::uint64_t{1} << (entry.slot % slots));
  }

  std::int64_t next_tick_of(unsigned level) const noexcept {
    if (filled_[level] == 0) return never;
    // All timers of a level lie in its present round, after the present slot.
    const std::int64_t round =
        level + 1 < levels ? (now_ >> shift_of(level + 1)) << shift_of(level + 1) : 0;
    return round + (static_cast<std::int64_t>(std::countr_zero(filled_[level])) << shift_of(level));
  }

  std::int64_t next_of_slots() const noexcept {
    std::int64_t first = never;
    for (unsigned level = 0; level < levels; ++level) {
      if (const std::int64_t at = next_tick_of(level); at < first) first = at;
    }
    return first;
  }

  // Empties the slots that begin at the present: their timers move down, or are due.
  void cascade() noexcept {
    for (unsigned level = levels; level-- > 0;) {
      if (next_tick_of(level) != now_) continue;
      const auto slot = static_cast<unsigned>(std::countr_zero(filled_[level]));
      filled_[level] &= ~(std::uint64_t{1} << slot);
      timer_list moves(std::move(slots_[level * slots + slot]));
      if (walk_slot_ == level * slots + slot) walk_next_ = nullptr;  // T3: found in a later slot
      for (timer* next = moves.first(); next != nullptr;) {
        timer& entry = *next;
        next = timer_list::next(entry);
        put(entry);  // links it anew
      }
    }
  }

  void enter_slot(unsigned slot) noexcept {
    walk_slot_ = slot;
    walk_next_ = list_of(slot).first();
  }
  const timer_list& list_of(unsigned slot) const noexcept {
    return slot == due_slot ? due_ : slots_[slot];
  }
  // Moves to the next slot that has timers; false when there is none.
  bool leave_slot() noexcept {
    while (walk_next_ == nullptr && walk_slot_ != due_slot)
      enter_slot(walk_slot_ == 0 ? due_slot : walk_slot_ - 1);
    return walk_next_ != nullptr;
  }

  std::int64_t now_ = 0;
  std::size_t count_ = 0;
  timer* walk_next_ = nullptr;
  unsigned walk_slot_ = due_slot;
  std::array<std::uint64_t, levels> filled_{};
  std::array<timer_list, std::size_t{levels} * slots> slots_{};
  timer_list due_;
};

}  // namespace troupe::tasks
