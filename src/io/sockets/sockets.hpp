// The functions that the creation of every type of socket needs.
#pragma once

#include <cerrno>
#include <string>

#include "io/reactor/reactor.hpp"
#include "troupe/io/endpoint.hpp"
#include "troupe/io/error.hpp"
#include "troupe/io/operations/descriptor.hpp"
#include "troupe/task/current_actor.hpp"

namespace troupe::io {

// The system calls of the runtime whose handler this thread runs; elsewhere the system's own.
inline kernel& current_kernel() {
  const reactor* reactor = reactor::current();
  return reactor == nullptr ? system_kernel() : reactor->calls;
}
// The system calls with which the descriptor was made.
inline kernel& kernel_of(const descriptor& open) {
  const slot* at = open.bound();
  return at == nullptr ? system_kernel() : at->owner->calls;
}

inline int checked(int result, const char* call, const std::string& call_text) {
  if (result < 0) throw io_error(literal::of_table(call), call_text, -result);
  return result;
}

// Creates a socket, and binds it to the runtime whose handler this thread runs.
inline descriptor make_socket(int domain, int type, const std::string& call_text) {
  kernel& calls = current_kernel();
  descriptor socket(checked(calls.socket(domain, type, 0), "socket", call_text));
  if (sched::io_driver_slot* driver = tasks::current_io()) socket.bind(*driver);
  return socket;
}

inline void shutdown_write_of(const descriptor& open) {
  checked(kernel_of(open).shutdown(open.fd(), SHUT_WR), "shutdown",
          "descriptor " + std::to_string(open.fd()));
}

inline endpoint local_of(const descriptor& open) {
  endpoint name;
  socklen_t bytes = endpoint::capacity();
  checked(kernel_of(open).local_name(open.fd(), name.data(), &bytes), "getsockname",
          "descriptor " + std::to_string(open.fd()));
  return name;
}

}  // namespace troupe::io
