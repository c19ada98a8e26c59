// fatal_signals: the log is written before a signal such as SIGSEGV or SIGABRT has its effect.
#pragma once

namespace troupe::log {

// From now on. What handled these signals before does so afterwards.
void catch_fatal_signals() noexcept;

}  // namespace troupe::log
