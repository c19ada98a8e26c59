// fatal_signals: a call before a signal such as SIGSEGV or SIGABRT has its effect.
#pragma once

namespace troupe::log {

// From now on one thread calls `write` in the handler of such a signal. The handlers that were
// installed before run afterwards. Call it once.
void catch_fatal_signals(void (*write)() noexcept) noexcept;

}  // namespace troupe::log
