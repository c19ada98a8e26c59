// of_file: whether sending a file over a stream failed because of the file.
#pragma once

#include <system_error>

#include "troupe/io/error.hpp"

namespace troupe::io {

// True for the errors of a folder, of a file that was opened for writing only, and of a disk. A
// stream that is open does not report them.
inline bool is_of_file(const io_error& failure) noexcept {
  return failure.code() == std::errc::invalid_argument ||
         failure.code() == std::errc::is_a_directory || failure.code() == std::errc::io_error ||
         failure.code() == std::errc::bad_file_descriptor;
}

}  // namespace troupe::io
