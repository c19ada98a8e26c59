// at_fork: the objects that the whole process shares stay usable in the child of a fork(), which
// has only the thread that called it.
#pragma once

#include <mutex>

namespace troupe::base {

// fork() holds the mutex from here on, so that the child finds the data guarded by it whole; in the
// child, before it unlocks the mutex, it calls `forget`, which drops the data of threads that the
// child does not have: their memory is used again. The mutex lives as long as the program, and no
// thread takes another one of these while it holds it. Thread: any. Beyond the first 64 they are
// not held.
void hold_at_fork(std::mutex& mutex, void (*forget)() noexcept = nullptr) noexcept;

}  // namespace troupe::base
