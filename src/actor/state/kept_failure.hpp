// kept_failure: failures whose exceptions refer to memory, and that memory, which must live until
// the failure is delivered. The library's own.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <utility>

#include "troupe/context/context.hpp"
#include "troupe/sched/message.hpp"

namespace troupe::actor {

class actor_system;

struct kept_memory {
  std::shared_ptr<const void> held;
  std::size_t bytes = 0;  // upper bound of the memory's size
};

// The memory of a whole context, which ends with it; nothing when memory is out, since the failure
// itself is still to be reported.
kept_memory keep_context(owned_context context) noexcept;

// A failure that has not been delivered yet, and the memory that it may refer to.
struct kept_failure {
  kept_failure() = default;
  kept_failure(std::exception_ptr thrown, std::shared_ptr<const void> held) noexcept
      : memory(std::move(held)), exception(std::move(thrown)) {}
  kept_failure(const kept_failure&) = default;
  kept_failure(kept_failure&&) noexcept = default;
  // Exchanges, so that the old members are destroyed in the right order: the exception before the
  // memory.
  kept_failure& operator=(kept_failure other) noexcept {
    memory.swap(other.memory);
    std::swap(exception, other.exception);
    return *this;
  }

  std::shared_ptr<const void> memory;  // declared first, so that it is destroyed last
  std::exception_ptr exception;
};

// Reports a failure of the current turn's actor, in the work that `describes` names. The memory in
// `keeps` lives until run() has thrown the failure and then throws the next one. A failure that is
// not kept is destroyed at once: the caller must not refer to the exception any longer.
void report_keeping(sched::message::handler describes, std::exception_ptr failure,
                    kept_memory keeps) noexcept;
// The same for a failure of a naked procedure, which belongs to no actor.
void report_keeping(actor_system& system, std::exception_ptr failure, kept_memory keeps) noexcept;

}  // namespace troupe::actor
