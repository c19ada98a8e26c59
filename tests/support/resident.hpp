// The memory of this process.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace troupe::test {

// What it has in memory now.
inline std::size_t resident_bytes() {
  std::size_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace troupe::test
