// reaper: waits for the child processes for which the program does not wait, so that none stays as
// a zombie.
#pragma once

namespace troupe::io {

// Takes over the pidfd of a child that is not reaped yet. Any thread. A thread of the reaper polls
// such children for as long as there are some. If that thread cannot be started, they are checked
// when the next child is left.
void reap_in_background(int pidfd) noexcept;

}  // namespace troupe::io
