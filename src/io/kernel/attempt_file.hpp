// attempt_file: carries out an operation of a file, by system calls.
#pragma once

#include <cstddef>

#include "io/kernel/kernel.hpp"
#include "troupe/io/operations/operation.hpp"

namespace troupe::io {

// The most bytes of one call for a file or a ring, so that the result fits into an int.
inline constexpr std::size_t step_bytes_max = std::size_t{1} << 30;

// Tries an operation of a file. `at_once`: returns false where the call would wait for a
// disk. Otherwise the operation always ends, and the call may block. Meanwhile no other thread
// touches the operation.
bool attempt_file(kernel& calls, int fd, operation& operation, bool at_once) noexcept;

}  // namespace troupe::io
