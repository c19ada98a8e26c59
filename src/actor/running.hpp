// running: which handlers run right now, for who must say why an end does not come.
#pragma once

#include <string>

#include "actor/system.hpp"

namespace troupe::actor {

struct turn_place;

// Adds the calling thread, until it ends.
void list_running(turn_place& of_thread) noexcept;

// Marks the calling thread as inside a posted procedure of this system.
class inside_procedure {
 public:
  explicit inside_procedure(const system& home) noexcept;
  ~inside_procedure();
  inside_procedure(const inside_procedure&) = delete;
  inside_procedure& operator=(const inside_procedure&) = delete;
};

// Whether the calling thread is in a handler, a constructor or a posted procedure.
bool is_running() noexcept;
// The same, of this system.
bool is_running(const system& home) noexcept;

// A stop discards what is queued: the turns that run now look at each message from here on.
void notice_stop(const system& home) noexcept;

// "&Account::deposit; …" of this system; "none" when there is none. Any thread; a snapshot.
std::string running_handlers(const system& home);

}  // namespace troupe::actor
