// running: which handlers run right now, for messages that say why a stop takes so long.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "actor/actor_system.hpp"
#include "actor/turn/counts.hpp"
#include "actor/turn/turn.hpp"
#include "sched/stealing/worker.hpp"

namespace troupe::actor {

// The calling thread's worker if it is one of this system's pool; else null. A pool ends before its
// system does.
TROUPE_INLINE sched::worker* own_worker(const actor_system& system) noexcept {
  sched::worker* const self = sched::worker::current();
  // order: relaxed  written before the pool had workers
  return self != nullptr && self->executor == system.executors[0].load(std::memory_order_relaxed)
             ? self
             : nullptr;
}

// From now on the calling thread runs turns of this system. The thread stays in the list until it
// ends.
void enter_system(thread_turn_state& of_thread, const actor_system& system) noexcept;
// The system ends: threads that ran its turns forget it.
void leave_system(const actor_system& system) noexcept;

// Marks the calling thread as inside a posted procedure of this system, or inside other work that
// is no actor's turn, whose name `describes` returns.
class inside_procedure {
 public:
  explicit inside_procedure(const actor_system& system,
                            message::handler describes = nullptr) noexcept;
  ~inside_procedure();
  inside_procedure(const inside_procedure&) = delete;
  inside_procedure& operator=(const inside_procedure&) = delete;
};

// Whether the calling thread is in a handler, a constructor or a posted procedure.
bool is_running() noexcept;
// The same, for this system only.
bool is_running(const actor_system& system) noexcept;

// A stop discards what is queued: from now on the turns that run check for it before each message.
void notice_stop(const actor_system& system) noexcept;

// How many turns are suspended. Exact when no turn runs.
std::int64_t suspended_turns(const actor_system& system) noexcept;

// Calls `look` with what each thread has counted for this system. Workers of the pool are numbered
// from 1; all other threads are 0, possibly in several calls.
void for_each_count(const actor_system& system,
                    const std::function<void(unsigned worker, const counts& its)>& look);
void count_elsewhere(actor_system& system, counted what, std::int64_t n) noexcept;
inline void count(actor_system& system, counted what, std::int64_t n = 1) noexcept {
  thread_turn_state& state = current_turn();
  // order: relaxed  the thread's own
  if (state.system.load(std::memory_order_relaxed) != &system) [[unlikely]]
    return count_elsewhere(system, what, n);
  state.own.add(what, n);
}

// "&Account::deposit (#17); …" of this system, with the actors' ids; "none" when no handler runs.
// Any thread; a snapshot.
std::string running_handlers(const actor_system& system);

}  // namespace troupe::actor
