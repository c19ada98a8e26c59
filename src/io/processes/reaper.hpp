// reaper: waits for child processes that nobody waits for any more, so that none stays as a zombie.
#pragma once

namespace troupe::io {

// Takes a pidfd over, of a child that was not reaped yet. Any thread. A thread of its own polls
// them, for as long as there are some; where it cannot be had they are looked at with the next
// child that is left.
void reap_in_background(int pidfd) noexcept;

}  // namespace troupe::io
