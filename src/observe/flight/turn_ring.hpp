// turn_ring: the last turns of one thread, in 6 bytes each. The oldest are overwritten.
//
// A record is two words that are written one after the other: a number, and a code with the meaning
// of the number (recorder.hpp). No record refers to another record: a reader may begin anywhere.
// Writer: the thread that owns it.
// Readers: any thread, even in a signal handler, and a debugger of a core file. Nothing here
// allocates or locks.
// Invariants
//   F1  record i lies in slot i modulo the size; records below `written` are complete.
//   F2  the words that were read of record i are valid if afterwards `written` is less than
//       i + size. Otherwise the writer may have begun to overwrite it: the number and the code may
//       be of two records.
// docs/protocols/flight_recorder.md
#pragma once

#include <cstddef>
#include <cstdint>

#include "troupe/base/platform.hpp"

namespace troupe::observe {

struct turn_record {
  std::uint32_t number = 0;
  std::uint16_t code = 0;
};

template <class Atomics>
class turn_ring {
 public:
  using number_word = typename Atomics::template atomic<std::uint32_t>;
  using code_word = typename Atomics::template atomic<std::uint16_t>;
  static constexpr std::size_t record_bytes = 6;

  // `size` is a power of two, and the number of words at both addresses. They are zero.
  turn_ring(number_word* numbers, code_word* codes, std::size_t size) noexcept
      : numbers_(numbers), codes_(codes), mask_(size - 1) {}

  // Returns how many records were written so far.
  TROUPE_INLINE std::uint64_t put(turn_record record) noexcept {
    // order: relaxed  the writer's own
    const std::uint64_t at = written_.load(std::memory_order_relaxed);
    fill(static_cast<std::size_t>(at) & mask_, record);
    // order: release  the record is complete (F1); pairs with written/acquire
    written_.store(at + 1, std::memory_order_release);
    return at + 1;
  }

  // order: acquire  sees the records below it (F1); pairs with put/release
  std::uint64_t written() const noexcept { return written_.load(std::memory_order_acquire); }
  std::size_t size() const noexcept { return mask_ + 1; }
  std::uint64_t oldest(std::uint64_t written) const noexcept {
    return written <= mask_ ? 0 : written - mask_;
  }

  // Reads a record that was written. Returns false when it has been overwritten in the meantime.
  bool read(std::uint64_t at, turn_record& into) const noexcept {
    const std::size_t slot = static_cast<std::size_t>(at) & mask_;
    // order: acquire (both)  in front of the number below (F2); pairs with fill/release
    into.number = numbers_[slot].load(std::memory_order_acquire);
    into.code = codes_[slot].load(std::memory_order_acquire);
    // order: relaxed  behind the loads above
    return written_.load(std::memory_order_relaxed) <= at + mask_;
  }

 private:
  friend struct debugger_view;  // src/runtime/debugger_table.cpp
  TROUPE_INLINE void fill(std::size_t slot, turn_record record) noexcept {
    // order: release (both)  after the number of the records before, so that a reader of a new word
    // sees that number (F2); pairs with read/acquire
    numbers_[slot].store(record.number, std::memory_order_release);
    codes_[slot].store(record.code, std::memory_order_release);
  }

  number_word* const numbers_;
  code_word* const codes_;
  const std::size_t mask_;
  typename Atomics::template atomic<std::uint64_t> written_{0};
};

}  // namespace troupe::observe
