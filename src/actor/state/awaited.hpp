// awaited: the event that a suspended call awaits, in words and for the search for deadlocks.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>

#include "troupe/task/async_call.hpp"

namespace troupe::actor {

// Copied from a suspended call while its actor is held. Texts are made after that.
struct awaited {
  std::source_location at;  // a line of the user's code; line 0 when none is known
  const char* event;
  const char* method;
  const void* asked;                  // an actor, which may have been freed since
  std::source_location held_since{};  // of a lock: where its holder took it
  std::uint32_t first_seen = 0;       // long_waits.hpp; 0: no look has seen it
  const void* held_by = nullptr;      // of a lock: its holder, only to be compared
  unsigned lock = 0;  // a number that distinguishes locks whose holders are in the same line; or 0
};
awaited look_at(const tasks::suspension& wait);
// Who holds the lock for which `wait` waits. False when the wait is over.
bool is_locked_out(const tasks::suspension& wait, tasks::lock_holder& holder) noexcept;
// Whether the line lies in one of the library's own coroutines. No text names such a line: the user
// can do nothing about it.
bool is_of_library(const std::source_location& where) noexcept;
// "bank.cpp:12".
std::string place_of(const std::source_location& where);

// By the owner of an actor that is about to be parked: whether a search for deadlocks must know the
// wait of its suspended call. `suspended` is null for a reentrant actor, which may have several.
bool waits_for_others(const tasks::async_call* suspended) noexcept;

}  // namespace troupe::actor
