// current_context: the current context of each thread, and a record of it for checked builds.
#pragma once

#include <atomic>
#include <string>

#include "context/keep.hpp"
#include "troupe/base/error.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/context/context.hpp"

namespace troupe::contexts {

#if defined(TROUPE_CHECKED) && TROUPE_CHECKED
inline constexpr bool checked = true;
#else
inline constexpr bool checked = false;
#endif

// Differs from the value of any other thread that is alive.
const void* this_thread() noexcept;

// Do not use it in the body of a coroutine, which may resume on another thread.
extern constinit thread_local context* current [[gnu::tls_model("initial-exec")]];

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

// Returns, for example, "context 7 (upload)".
std::string describe(const context& context);

inline void check_running(const context& of, const std::atomic<const void*>& runs_on) {
  if constexpr (checked) {
    // order: relaxed  catches a wrong program only sometimes
    const void* on = runs_on.load(std::memory_order_relaxed);
    if (on != nullptr && on != this_thread()) {
      throw unguarded_error("troupe: " + describe(of) +
                            " is used by two threads at once: persist or promote the objects that "
                            "the other thread needs");
    }
  }
}

}  // namespace troupe::contexts
