// actor_host: the services that a runtime gives its actors.
#pragma once

#include <cstdint>
#include <exception>

#include "actor/state/kept_failure.hpp"
#include "sched/runtime_host.hpp"

#include "troupe/base/unique_function.hpp"

namespace troupe::actor {

// The names of a failed call or a dead letter. They are literals.
struct failed_call {
  const char* actor = "";
  const char* method = "";
  std::uint64_t id = 0;     // the actor's id; 0: no actor
  kept_memory keeps{};      // the memory that a failure's exception refers to
  bool is_dropped = false;  // the exception of a result that no code waits for any longer
};

// The handler that the calling thread runs, for an error that it drops; empty outside of handlers.
failed_call place_of_dropped() noexcept;

class actor_host : public sched::runtime_host {
 public:
  // Called on the thread where the failure happens.
  virtual void failed(const failed_call& where, std::exception_ptr thrown) noexcept = 0;
  // Called only while actor_system::observes_dead_letters is set.
  virtual void dead_letter(const failed_call& where) noexcept = 0;
  // A failure escalates from an actor without a parent.
  virtual void escalated() noexcept = 0;
  // Runs a call that may block, on a thread that is no worker. While it runs the program is not out
  // of work. Any thread. Throws std::bad_alloc, std::system_error.
  virtual void run_blocking(unique_function<void()> call) = 0;

 protected:
  actor_host() = default;
  ~actor_host() = default;
};

}  // namespace troupe::actor
