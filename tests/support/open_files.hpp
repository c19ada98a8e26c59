// How many descriptors the process has open.
#pragma once

#include <filesystem>
#include <iterator>

namespace troupe::test {

inline int open_files() {
  // The look itself has one open.
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {})) -
         1;
}

}  // namespace troupe::test
