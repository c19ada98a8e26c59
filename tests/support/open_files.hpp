// The number of descriptors that the process has open.
#pragma once

#include <filesystem>
#include <iterator>

namespace troupe::test {

inline int open_files() {
  // Reading the directory has one descriptor open itself.
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {})) -
         1;
}

}  // namespace troupe::test
