// exhaustion: errors of accept() that end when other descriptors are closed or memory is freed.
#pragma once

#include <system_error>

#include "troupe/io/error.hpp"

namespace troupe::io {

inline bool is_exhaustion(const io_error& failure) noexcept {
  const std::error_code code = failure.code();
  return code == std::errc::too_many_files_open ||
         code == std::errc::too_many_files_open_in_system || code == std::errc::no_buffer_space ||
         code == std::errc::not_enough_memory;
}

}  // namespace troupe::io
