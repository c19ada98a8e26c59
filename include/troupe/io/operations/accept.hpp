// accept: the common part of all listeners.
#pragma once

#include "troupe/base/language.hpp"

#include <optional>
#include <stop_token>
#include <utility>

#include "troupe/io/operations/suspension.hpp"
#include "troupe/task/task.hpp"

namespace troupe {

// Options of tcp_listener::listen() and unix_listener::listen().
//
// Example:
//     troupe::listen_options options;
//     options.backlog = 100;
//     auto listener = troupe::tcp_listener::listen(troupe::endpoint::loopback(0), options);
struct listen_options {
  // Connections that may wait to be accepted. Default 4096; the system has a limit of its own
  // (net.core.somaxconn).
  int backlog = 4096;
  // Several listeners share the port, in several processes of one user as well, and the system
  // distributes connections among them (SO_REUSEPORT). A connection that waits in the queue of a
  // listener is lost when that listener closes. Default false. For TCP only.
  bool reuse_port = false;
  // The permissions of the file of a Unix socket, such as 0660: users who may write to it may
  // connect. They hold before the first client can connect. Default empty: 0777 without the bits of
  // the process's umask. Not for names without a file.
  std::optional<unsigned> permissions{};
  // True: the program may be out of work while this waits for connections. Default false.
  bool weak = false;
};

namespace io {

// The job of the awaitable that accept() returns (see awaitable in suspension.hpp), without the
// type of its stream.
class accept_base {
 public:
  static constexpr action opcode = action::accept;
  accept_base(descriptor& listener, bool weak) noexcept : listener_(&listener), weak_(weak) {}
  accept_base(accept_base&& other) noexcept : listener_(other.listener_), weak_(other.weak_) {}
  ~accept_base();
  descriptor& prepare(operation_suspension& wait) noexcept;

 protected:
  descriptor take(operation_suspension& wait);

 private:
  descriptor* listener_;
  bool weak_;
  // The operation, until take() makes its result a descriptor. If the coroutine is destroyed before
  // that, the destructor closes the result.
  operation_suspension* unclaimed_ = nullptr;
};

template <class Stream>
class accept_job : public accept_base {
 public:
  using accept_base::accept_base;
  using result = Stream;
  Stream finish(operation_suspension& wait) { return Stream(take(wait)); }
};

}  // namespace io

}  // namespace troupe
