// notify: reports the state of the service to the service manager (systemd) and to the process
// before this one.
#pragma once

#include "troupe/base/language.hpp"

#include <string_view>

namespace troupe::service {

// The service accepts requests: call it when all listeners are open. It notifies systemd
// (`Type=notify`), and the process that has started this one to take over from it (successor).
// Without these two it does nothing. Thread: any. Blocking: no. Errors: none; if systemd cannot be
// notified, because its socket is full or dead, a line on standard error reports this, and the
// message is sent again until systemd has it: first after 100 ms, then after pauses up to a minute.
// At most 16 messages wait.
//
// Example:
//     troupe::service::ready();
void ready() noexcept;

// reloading(): the service reads its configuration again, or starts its successor, until ready().
// stopping(): the service ends. Both notify only systemd. Thread, blocking and errors as ready().
void reloading() noexcept;
void stopping() noexcept;

// Sends lines of the protocol to systemd, such as "STATUS=12 users" (man sd_notify). Returns
// whether systemd has them: false if there is no service manager (NOTIFY_SOCKET is not set), or if
// they are to be sent again. Lines that are too long for a datagram are reported, and not sent
// again. Thread, blocking and errors as ready().
bool notify(std::string_view lines) noexcept;

}  // namespace troupe::service
