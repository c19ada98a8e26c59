// io_backend: what carries out a runtime's I/O.
#pragma once

#include <cstdint>

namespace troupe {

// All keep the same promises. `simulated` belongs to policy::simulated, which always has it: a
// network within the process, virtual time, nothing of the machine's.
enum class io_backend : std::uint8_t { automatic, io_uring, epoll, simulated };

}  // namespace troupe
