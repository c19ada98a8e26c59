// io_backend: the mechanism that executes a runtime's I/O.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>

namespace troupe {

// All backends give the same guarantees. `simulated` belongs to policy::simulated, which always
// uses it: a network within the process, with virtual time; the machine's network is not used.
enum class io_backend : std::uint8_t { automatic, io_uring, epoll, simulated };

}  // namespace troupe
