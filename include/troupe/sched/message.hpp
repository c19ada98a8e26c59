// message: what rides a mailbox. A link and one function pointer; what the message carries follows.
#pragma once

#include <atomic>
#include <cstdint>

namespace troupe::sched {

enum class message_act : std::uint8_t {
  // do what the message asks of the object, then free the message (also when that throws)
  handle,
  discard,   // free the message; nobody will handle it
  describe,  // the method's name; the message is not touched and may be null
  // of a coroutine handler's (task/async_call.hpp): it has come to its end; free the message
  complete,
  // of a wait (task/async_call.hpp): not null when it could be ended. Of a spawned task: nobody is
  // left to take its result
  detach,
  reclaim,  // of a wait that could not: until it is over, at the actor's end
};

// Messages that nobody sent, but that the runtime owes their actor, describe themselves so; they
// are known by where that stands.
inline constexpr char described_as_constructor[] = "constructor",
                      described_as_callback[] = "a callback of a future",
                      described_as_submitted[] = "a callback of a submitted call";
inline bool is_owed(const char* described) noexcept {
  return described == described_as_constructor || described == described_as_callback ||
         described == described_as_submitted;
}

// Aligned so that a link has room for tags (actor/mailbox/mailbox.hpp).
struct alignas(16) message {
  using handler = const char* (*)(message*, void* object, message_act);
  explicit message(handler acts) noexcept : act(acts) {}

  std::atomic<std::uintptr_t> next{0};  // mailbox.hpp says of whom
  const handler act;
};

}  // namespace troupe::sched
