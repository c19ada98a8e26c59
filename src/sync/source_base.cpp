#include "troupe/sync/channels/source_base.hpp"

namespace troupe::sync {

void source_base::close() noexcept {
  woken_waiters ready;
  {
    std::lock_guard guard(mutex_);
    // order: relaxed  written under the mutex; elsewhere a hint
    closed_.store(true, std::memory_order_relaxed);
    ready.push_all(waiting_);
  }
  ready.wake();
}

// order: relaxed  the caller has a handle already
void source_base::add_writer() noexcept { writers_.fetch_add(1, std::memory_order_relaxed); }

void source_base::drop_writer() noexcept {
  // order: acq_rel  the last one closes after all that the others did
  if (writers_.fetch_sub(1, std::memory_order_acq_rel) == 1) close();
}

}  // namespace troupe::sync
