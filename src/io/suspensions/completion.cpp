// The end of an operation: the notification of its user by a reactor. In one file, so that it is
// one function.
#include "io/reactor/reactor.hpp"
#include "io/suspensions/arrival.hpp"
#include "troupe/io/operations/suspension.hpp"

namespace troupe::io {

// An operation that is due has not been carried out yet: operation_suspension counts it.
void operation::completed() noexcept {
  if (operation_counts* const counts = at->owner->counted.get(); counts != nullptr && !due)
      [[unlikely]]
    counts->end(*this);
  if (awaited) return static_cast<operation_suspension*>(this)->on_completed();
  auto& self = *static_cast<arrival*>(this);
  self.came(self);
}

void reactor::complete(operation& operation) noexcept {
  const bool weak = operation.weak;
  operation.completed();
  leave(weak);
}

// Whatever the end of the operation woke is counted by now.
void reactor::leave(bool weak) noexcept {
  if (!weak) wait_for(-1);
}

}  // namespace troupe::io
