// message: an element of a mailbox: a link and one function pointer. Derived classes add the
// content.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstdint>

namespace troupe::sched {

// The requests to a message's function.
enum class message_act : std::uint8_t {
  // does the message's work on the object, then frees the message (after an exception as well)
  handle,
  discard,   // frees the message, which no actor will handle
  describe,  // returns the method's name; does not touch the message, which may be null
  // for a coroutine handler (task/async_call.hpp): the coroutine has ended; frees the message
  complete,
  // for a suspension (task/async_call.hpp): returns not null if the wait could be ended. For a
  // spawned task: no receiver of its result is left
  detach,
  reclaim,  // for a suspension that could not be ended: waits until it is over, at the actor's end
  // for a suspension that waits for a lock (suspension::for_lock): writes the holder into the
  // lock_holder that `object` points to. Returns null if the wait is over
  holder,
  // for a suspension whose event cannot be undone (suspension::is_final): the event cannot happen
  // from now on. Returns not null if it has, so that the end of the wait is on its way
  pause,
  resume,  // the event may happen again, or does so at once
};

// The descriptions of messages that no sender sent, but that the runtime owes to their actor. The
// address of the text identifies them.
inline constexpr char described_as_constructor[] = "constructor",
                      described_as_callback[] = "a callback of a future",
                      described_as_submitted[] = "a callback of a submitted call",
                      described_as_timed[] = "the procedure of a timer";
inline bool is_owed(const char* described) noexcept {
  return described == described_as_constructor || described == described_as_callback ||
         described == described_as_submitted || described == described_as_timed;
}

// Aligned so that a link has space for tags (actor/mailbox/mailbox.hpp).
struct alignas(16) message {
  using handler = const char* (*)(message*, void* object, message_act);
  explicit message(handler acts) noexcept : act(acts) {}

  std::atomic<std::uintptr_t> next{0};  // the owner of the link: see mailbox.hpp
  const handler act;
};

}  // namespace troupe::sched
