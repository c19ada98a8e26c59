// adopted: listening sockets that another process has opened.
#pragma once

#include "troupe/io/operations/descriptor.hpp"

namespace troupe::io {

// AF_INET, AF_INET6 or AF_UNIX for a stream socket that listens; otherwise -1.
int listening_family_of(int fd) noexcept;

// Owns the socket, which no program that this process starts inherits.
descriptor adopt_listening(int fd);

}  // namespace troupe::io
