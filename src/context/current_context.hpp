// current_context: sets the current context of a thread, with a record of it for checked builds.
#pragma once

#include <atomic>
#include <string>

#include "context/keep.hpp"
#include "context/thread_context.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/context/context.hpp"

namespace troupe::contexts {

// For the scheduler: makes `to` the current context of the thread; null for none. leave() with the
// value that this returns restores the context before.
TROUPE_INLINE context* enter(context* to) noexcept {
  context* const before = current;
  current = to;
  // order: relaxed  as in check_running
  if (checked && to != nullptr)
    access::runs_on(*to).store(this_thread(), std::memory_order_relaxed);
  return before;
}
TROUPE_INLINE void leave(context* before) noexcept {
  // order: relaxed  as in check_running
  if (checked && current != nullptr)
    access::runs_on(*current).store(nullptr, std::memory_order_relaxed);
  current = before;
}

inline std::string describe(const context& context) {
  return describe(context.number(), context.name());
}

}  // namespace troupe::contexts
