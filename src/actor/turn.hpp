// turn: one visit of a thread to an active actor.
#pragma once

#include <atomic>

#include "actor/activation.hpp"
#include "sched/runnable.hpp"

namespace troupe::actor {

// What the calling thread is in the middle of.
struct turn_place {
  cell* actor = nullptr;
  activation* active = nullptr;
  // For running.hpp, read by other threads.
  std::atomic<const cell_type*> type{nullptr};
  std::atomic<const system*> home{nullptr};
  std::atomic<message::handler> method{nullptr};
  bool listed = false;  // in the list of all threads that run turns
};
turn_place& current_turn() noexcept;

// How the scheduler handles an activation.
extern const sched::runnable_type turn_type;

// Tells the actor that its last ref has gone.
void say_farewell(cell& to) noexcept;

}  // namespace troupe::actor
