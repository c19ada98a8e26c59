// keeping: a failure whose exception refers to memory that must live until it is delivered. The library's own.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>

#include "troupe/sched/message.hpp"

namespace troupe::actor {

struct kept_memory {
  std::shared_ptr<const void> held;
  std::size_t bytes = 0;  // at most
};

// A failure of the actor whose turn this is, in what `describes` names; what `keeps` holds goes when run() has thrown it, and then another one. When the failure
// is not kept it goes at once: the caller has no other hold on the exception.
void report_keeping(sched::message::handler describes, std::exception_ptr what, kept_memory keeps) noexcept;

}  // namespace troupe::actor
