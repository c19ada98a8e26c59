// thread_clock: the times that the system keeps for a thread of this process, by its number
// (gettid), so that the thread itself does nothing for it. Thread: any.
#pragma once

#include <cstdint>

namespace troupe::base {

// The processor time that the thread has used; -1 if it has ended. Cost: about 300 ns.
std::int64_t cpu_ns_of(int thread) noexcept;
// The same of the calling thread.
std::int64_t own_cpu_ns() noexcept;
// Whether the thread sleeps in a call of the system or at a lock; false if it has ended. Cost: some
// microseconds.
bool is_blocked(int thread) noexcept;

}  // namespace troupe::base
