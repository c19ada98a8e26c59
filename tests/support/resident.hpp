// The memory that this process uses.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace troupe::test {

// The resident memory now, in bytes.
inline std::size_t resident_bytes() {
  std::size_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace troupe::test
