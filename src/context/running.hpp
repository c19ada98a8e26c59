// running: which thread has a context as its current one; looked at in checked builds.
#pragma once

#include <atomic>
#include <string>

#include "troupe/base/error.hpp"
#include "troupe/context/context.hpp"

namespace troupe::contexts {

#if defined(TROUPE_CHECKED) && TROUPE_CHECKED
inline constexpr bool checked = true;
#else
inline constexpr bool checked = false;
#endif

// Unlike that of any other thread that is alive.
const void* this_thread() noexcept;

// "context 7 (upload)".
std::string describe(const context& of);

inline void check_running(const context& of, const std::atomic<const void*>& runs_on) {
  if constexpr (checked) {
    // order: relaxed  a wrong program that is caught only sometimes
    const void* on = runs_on.load(std::memory_order_relaxed);
    if (on != nullptr && on != this_thread()) {
      throw unguarded_error("troupe: " + describe(of) + " is used by two threads at once: persist or promote what the other one is to have");
    }
  }
}

}  // namespace troupe::contexts
