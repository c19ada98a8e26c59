// dropped_errors: exceptions of results that no code waits for any longer
// (docs/protocols/dropped_errors.md).
#pragma once

#include <exception>

namespace troupe::tasks {

using dropped_observer = void (*)(const std::exception_ptr& failure) noexcept;
// `observer` gets the errors dropped by threads that run no work of a runtime; other threads
// report to their runtime. Set by the first runtime, for the rest of the process.
void observe_dropped_outside(dropped_observer observer) noexcept;

}  // namespace troupe::tasks
