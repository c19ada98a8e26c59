// attempt: tries an operation at once, by system calls.
#pragma once

#include <cstddef>

#include "io/kernel/kernel.hpp"
#include "io/reactor/slot.hpp"

namespace troupe::io {

// The caller holds the slot's mutex. Returns true when the operation is done; `result` and `done`
// hold its result. Returns false when the system would block; then `can_read` or `can_write` of the
// slot is false.
bool attempt(kernel& calls, slot& at, operation& operation) noexcept;

// True when the operation waits until something can be read, false when it waits to write.
inline bool reads(const operation& operation) noexcept {
  return operation.opcode == action::read || operation.opcode == action::accept ||
         operation.opcode == action::readable || operation.opcode == action::receive ||
         is_of_file(operation.opcode);
}

// The queue of its slot in which the operation waits.
inline operation_queue& queue_of(operation& operation) noexcept {
  if (reads(operation)) return operation.at->readers;
  return operation.opcode == action::ended ? operation.at->watchers : operation.at->writers;
}

// True if the error of accept() concerns the connection and not the listener: accept(2) recommends
// to try again.
bool is_of_the_peer(std::ptrdiff_t result) noexcept;

}  // namespace troupe::io
