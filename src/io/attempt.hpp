// attempt: tries an operation by system calls, here and now.
#pragma once

#include "io/kernel.hpp"
#include "io/slot.hpp"

namespace troupe::io {

// The slot's mutex held. True when the operation is done, `result` and `done` say how. False when the system would block:
// then the slot knows that it cannot read, or write.
bool attempt(kernel& calls, slot& at, operation& one) noexcept;

// Which direction an operation waits for.
inline bool reads(const operation& one) noexcept {
  return one.what == action::read || one.what == action::accept || one.what == action::readable || one.what == action::receive;
}

}  // namespace troupe::io
