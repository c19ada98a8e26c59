// attempt: tries an operation by system calls, here and now.
#pragma once

#include <cstddef>

#include "io/reactor/kernel.hpp"
#include "io/reactor/slot.hpp"

namespace troupe::io {

// The slot's mutex held. True when the operation is done, `result` and `done` say how. False when
// the system would block: then the slot knows that it cannot read, or write.
bool attempt(kernel& calls, slot& at, operation& one) noexcept;

// Of a file, or of a ring, in one call: so what that comes to fits into an int.
inline constexpr std::size_t step_bytes_max = std::size_t{1} << 30;

// The same of a file's. `at_once`: false where it would wait for a disk; else it always ends, and
// may block. Only who carries it out touches the operation meanwhile.
bool attempt_file(kernel& calls, int fd, operation& one, bool at_once) noexcept;

// Which direction an operation waits for.
inline bool reads(const operation& one) noexcept {
  return one.what == action::read || one.what == action::accept || one.what == action::readable ||
         one.what == action::receive || is_of_file(one.what);
}

// Where it waits in its slot.
inline operation_queue& queue_of(operation& one) noexcept {
  if (reads(one)) return one.at->readers;
  return one.what == action::ended ? one.at->watchers : one.at->writers;
}

// What accept() says of the connection that would have been accepted, and not of the listener:
// accept(2) says to go on.
bool is_of_the_peer(std::ptrdiff_t result) noexcept;

}  // namespace troupe::io
