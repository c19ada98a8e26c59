// of_file: whether it was the file that could not be read when one was to be sent over a stream.
#pragma once

#include <system_error>

#include "troupe/io/error.hpp"

namespace troupe::io {

// A folder, one that was opened for writing only, or what the disk does not give: no stream that is
// open says these.
inline bool is_of_file(const io_error& what) noexcept {
  return what.code() == std::errc::invalid_argument || what.code() == std::errc::is_a_directory ||
         what.code() == std::errc::io_error || what.code() == std::errc::bad_file_descriptor;
}

}  // namespace troupe::io
