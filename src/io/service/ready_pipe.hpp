// ready_pipe: the pipe on which the process before this one waits until this one is ready.
#pragma once

namespace troupe::service {

// Keeps the descriptor until ready() is called.
void keep_ready_pipe(int fd) noexcept;
// Notifies the process before this one, once. Does nothing if there is none.
void tell_predecessor() noexcept;

}  // namespace troupe::service
