// thread_context: the current context of each thread; in checked builds, finds a context that two
// threads use at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "troupe/base/error.hpp"

namespace troupe {
class context;
}

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

// Returns, for example, "context 7 (upload)". `name` may be empty.
std::string describe(std::uint64_t number, const char* name);

// Throws unguarded_error if the context runs on another thread.
inline void check_running(std::uint64_t number, const char* name,
                          const std::atomic<const void*>& runs_on) {
  if constexpr (checked) {
    // order: relaxed  catches a wrong program only sometimes
    const void* on = runs_on.load(std::memory_order_relaxed);
    if (on != nullptr && on != this_thread()) {
      throw unguarded_error("troupe: " + describe(number, name) +
                            " is used by two threads at once: persist or promote the objects that "
                            "the other thread needs");
    }
  }
}

}  // namespace troupe::contexts
