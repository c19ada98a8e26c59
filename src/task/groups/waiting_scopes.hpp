// waiting_scopes: the scopes that got children while none of their own children ran.
//
// A child that a scope gets starts soon, but never inside the spawn: otherwise children that add
// children would need a stack of any size. Each thread keeps a list of the scopes that have
// children to start, and the outermost call of group::resume_branch or group::start of that thread
// starts them. The functions that touch a scope are in scope_group.cpp.
// Thread: each has its own list, which is empty between two turns.
#pragma once

#include <utility>

#include "troupe/task/when.hpp"

namespace troupe::tasks {

class scope_group;

// Exists in the call that may have to start children of waiting scopes.
class waiting_scopes {
 public:
  waiting_scopes() noexcept : is_outermost_(!std::exchange(of_thread.is_held, true)) {}
  waiting_scopes(const waiting_scopes&) = delete;
  waiting_scopes& operator=(const waiting_scopes&) = delete;
  ~waiting_scopes() {
    if (is_outermost_) of_thread.is_held = false;
  }

  // In the outermost call: starts children until a scope has ended by that. Returns the call that
  // must be resumed, or null when no scope waits any longer.
  async_call* start_next() noexcept {
    if (of_thread.first == nullptr || !is_outermost_) [[likely]]
      return nullptr;
    return start_waiting();
  }
  // The same, but not a branch that is held.
  async_call* start_next_to_run(const async_call& root) noexcept {
    async_call* next = start_next();
    while (next != nullptr && next != &root &&
           group::pause_beside_or_hold(static_cast<branch&>(*next)))
      next = start_next();
    return next;
  }
  static void start_if_outermost() noexcept {
    if (of_thread.first == nullptr || of_thread.is_held) [[likely]]
      return;
    waiting_scopes scopes;
    while (async_call* const next = scopes.start_next()) next->at->resume(*next);
  }
  static void add(scope_group& scope) noexcept;

 private:
  static async_call* start_waiting() noexcept;
  struct list {
    scope_group* first = nullptr;
    bool is_held = false;
  };
  static constinit thread_local list of_thread;
  const bool is_outermost_;
};

}  // namespace troupe::tasks
