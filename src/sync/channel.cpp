#include "troupe/sync/channel.hpp"

#include <mutex>
#include <new>

namespace troupe::sync {

void channel_base::close() noexcept {
  woken_waiters ready;
  {
    std::lock_guard guard(mutex_);
    // order: relaxed  written under the mutex; elsewhere a hint
    closed_.store(true, std::memory_order_relaxed);
    while (channel_waiter* const one = take_oldest(receivers_)) ready.push(*one);
    while (channel_waiter* const one = take_oldest(senders_)) {
      refuse(*one);
      ready.push(*one);
    }
  }
  ready.wake();
}

void channel_base::add_half(side of) noexcept {
  // order: relaxed  the caller has a handle already
  halves_[static_cast<int>(of)].fetch_add(1, std::memory_order_relaxed);
}

void channel_base::drop_half(side of) noexcept {
  // order: acq_rel  the last one closes after all that the others did
  if (halves_[static_cast<int>(of)].fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  close();
  if (of == side::receivers) drop_values();
}

void throw_not_sent(send_end why) {
  if (why == send_end::no_memory) throw std::bad_alloc();
  throw channel_closed("troupe: channel: it is closed; the value was not sent");
}

}  // namespace troupe::sync
