// notify: tells the service manager (systemd) and the process before this one how the service
// fares.
#pragma once

#include <string_view>

namespace troupe::service {

// The service accepts requests: call it when all listeners are open. It tells systemd
// (`Type=notify`), and the process that has started this one to take over from it (successor).
// Without these two it does nothing. Thread: any. Blocking: a system call; if systemd is busy, up
// to a second. Errors: io_error if systemd cannot be told.
//
// Example:
//     troupe::service::ready();
void ready();

// The service reads its configuration again, or starts its successor; ready() says that it is done.
// The service ends. Only systemd is told. As ready().
void reloading();
void stopping();

// Sends lines of the protocol to systemd, such as "STATUS=12 users" (man sd_notify). Returns false
// if
// there is no service manager (NOTIFY_SOCKET is not set). Thread, blocking and errors as ready().
bool notify(std::string_view lines);

}  // namespace troupe::service
