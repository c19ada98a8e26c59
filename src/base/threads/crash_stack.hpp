// crash_stack: a stack on which a thread handles a signal that came because its own is used up.
#pragma once

namespace troupe::base {

// Sets one for the calling thread, until the thread ends, unless the thread has one already. Does
// nothing when memory has run out, and later calls of the same thread cost a load and a branch.
void make_crash_stack() noexcept;

}  // namespace troupe::base
