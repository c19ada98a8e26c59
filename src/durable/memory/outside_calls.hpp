// outside_calls: the tasks and timers of a store outlive the call that starts them.
#pragma once

#include "troupe/task/call_context.hpp"

namespace troupe::durable::parts {

// While it exists, work that the thread starts belongs to no call: it outlives its caller's limits.
class outside_calls {
 public:
  outside_calls() noexcept : before_(tasks::exchange_context(nullptr)) {}
  outside_calls(const outside_calls&) = delete;
  outside_calls& operator=(const outside_calls&) = delete;
  ~outside_calls() { tasks::exchange_context(before_); }

 private:
  tasks::call_context* const before_;
};

}  // namespace troupe::durable::parts
