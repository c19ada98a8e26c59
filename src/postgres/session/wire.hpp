// wire: a connection of libpq, and the task that opens one.
#pragma once

#include <libpq-fe.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>

#include "troupe/task/task.hpp"

namespace troupe::postgres {

// Closed when the session and the tasks that wait for its socket have let go of it.
struct wire {
  explicit wire(PGconn* opened) noexcept : pg(opened) {}
  wire(const wire&) = delete;
  wire& operator=(const wire&) = delete;
  ~wire() { PQfinish(pg); }

  PGconn* const pg;
  std::stop_source ends;  // of the waits for the socket
};

// Connects to the first of the hosts, and of their addresses, that answers. Names are resolved on a
// thread that may block, for libpq would block the worker. Throws database::error, cancelled.
task<std::shared_ptr<wire>> open_wire(std::string target, std::chrono::nanoseconds at_most);

}  // namespace troupe::postgres
