// of_file: whether sending a file over a stream failed because of the file.
#pragma once

#include <system_error>

#include "troupe/io/error.hpp"

namespace troupe::io {

// True for the errors of a folder, of a file that was opened for writing only, and of a disk. A
// stream that is open does not report them.
inline bool is_of_file(const io_error& what) noexcept {
  return what.code() == std::errc::invalid_argument || what.code() == std::errc::is_a_directory ||
         what.code() == std::errc::io_error || what.code() == std::errc::bad_file_descriptor;
}

}  // namespace troupe::io
