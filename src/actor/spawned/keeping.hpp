// keeping: a failure whose exception refers to memory that must live until it is delivered. The
// library's own.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <utility>

#include "troupe/sched/message.hpp"

namespace troupe::actor {

struct kept_memory {
  std::shared_ptr<const void> held;
  std::size_t bytes = 0;  // at most
};

// A failure on its way, and the memory that it may refer to.
struct kept_failure {
  kept_failure() = default;
  kept_failure(std::exception_ptr thrown, std::shared_ptr<const void> held) noexcept
      : memory(std::move(held)), what(std::move(thrown)) {}
  kept_failure(const kept_failure&) = default;
  kept_failure(kept_failure&&) noexcept = default;
  // By exchange, so that what this one was goes in the right order.
  kept_failure& operator=(kept_failure other) noexcept {
    memory.swap(other.memory);
    std::swap(what, other.what);
    return *this;
  }

  std::shared_ptr<const void> memory;  // declared first, so that it goes last
  std::exception_ptr what;
};

// A failure of the actor whose turn this is, in what `describes` names; what `keeps` holds goes
// when run() has thrown it, and then another one. When the failure is not kept it goes at once: the
// caller has no other hold on the exception.
void report_keeping(sched::message::handler describes, std::exception_ptr what,
                    kept_memory keeps) noexcept;

}  // namespace troupe::actor
