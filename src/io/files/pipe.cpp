#include "troupe/io/pipe.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "io/operations/broken_pipes.hpp"
#include "troupe/io/error.hpp"

namespace troupe {

std::pair<pipe_stream, pipe_stream> pipe_stream::make() {
  io::ignore_broken_pipes();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) < 0) throw io_error("pipe", "", errno);
  return {pipe_stream(io::descriptor(ends[0]), io::stream_kind::pipe),
          pipe_stream(io::descriptor(ends[1]), io::stream_kind::pipe)};
}

pipe_stream pipe_stream::adopt(int fd) {
  io::ignore_broken_pipes();
  io::descriptor owned(fd);
  const int mode = ::fcntl(fd, F_GETFL);
  if (mode < 0 || ::fcntl(fd, F_SETFL, mode | O_NONBLOCK) < 0)
    throw io_error("adopt", "descriptor " + std::to_string(fd), errno);
  return {std::move(owned), io::stream_kind::pipe};
}

pipe_stream pipe_stream::standard_input() {
  return {io::descriptor::borrow(STDIN_FILENO), io::stream_kind::shared};
}

pipe_stream pipe_stream::standard_output() {
  io::ignore_broken_pipes();
  return {io::descriptor::borrow(STDOUT_FILENO), io::stream_kind::shared};
}

}  // namespace troupe
