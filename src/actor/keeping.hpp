// keeping: a failure whose exception refers to memory that must live until it is delivered. The library's own.
#pragma once

#include <exception>
#include <memory>

namespace troupe::actor {

// A failure of the actor whose turn this is; what `keeps` holds goes when run() has thrown it, and then another one.
void report_keeping(std::exception_ptr what, std::shared_ptr<const void> keeps) noexcept;

}  // namespace troupe::actor
