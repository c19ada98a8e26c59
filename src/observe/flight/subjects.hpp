// subjects: the meanings of the codes of records: handlers, source lines and events, by numbers of
// 12 bits. One table for the process.
//
// A subject is added once and never removed. A program has few of them: as many as it has handlers
// and lines with a co_await. When the table is full, a new one is `other`.
// Threads: any; nothing here allocates or locks, and a signal handler may read.
// Invariants
//   S1  the thread that has claimed a place by its key writes the rest, once, and then sets
//       `ready`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "troupe/observe/trace.hpp"

namespace troupe::observe {

struct subject {
  std::atomic<std::uint64_t> key{0};  // 0: free
  // for debuggers: the address of the handler, or of the source line; null for other kinds
  const void* at = nullptr;
  const char* name = nullptr;  // a literal: of the handler, the file, or the operation
  std::uint32_t line = 0;
  event kind = event::mark;  // handle_end: a turn; suspended: a line
  std::atomic<bool> ready{false};
};

class subjects {
 public:
  static constexpr std::size_t size = 4096;
  // Codes: the subject's number, and 4 bits for the record.
  static constexpr unsigned shift = 4, time_low_mask = 15;
  // These have no place in the table.
  enum fixed : std::uint16_t { none, other, time, time_high, first_free };

  // The key of a handler is its address; of anything else, the address with its kind.
  static std::uint64_t key_of(event kind, const void* at) noexcept {
    return reinterpret_cast<std::uintptr_t>(at) | (std::uint64_t{1} + static_cast<unsigned>(kind))
                                                      << 56;
  }

  struct description {
    event kind;
    const void* at;
    const char* name;
    std::uint32_t line;
  };
  // Returns the subject's number.
  static std::uint16_t find_or_add(std::uint64_t key, const description& is) noexcept;
  // Null for a fixed number, and while the subject is being added.
  static const subject* of(std::uint16_t number) noexcept;
  static const subject* all() noexcept;
};

}  // namespace troupe::observe
