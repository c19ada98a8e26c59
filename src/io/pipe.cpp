#include "troupe/io/pipe.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "troupe/io/error.hpp"

namespace troupe {
namespace {

void ignore_broken_pipes() {
  static const bool done = [] {
    struct sigaction seen {};
    if (::sigaction(SIGPIPE, nullptr, &seen) == 0 && seen.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace

std::pair<pipe_stream, pipe_stream> pipe_stream::make() {
  ignore_broken_pipes();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) < 0) throw io_error("pipe", "", errno);
  return {pipe_stream(io::descriptor(ends[0]), io::stream_kind::pipe), pipe_stream(io::descriptor(ends[1]), io::stream_kind::pipe)};
}

pipe_stream pipe_stream::adopt(int fd) {
  ignore_broken_pipes();
  io::descriptor owned(fd);
  const int mode = ::fcntl(fd, F_GETFL);
  if (mode < 0 || ::fcntl(fd, F_SETFL, mode | O_NONBLOCK) < 0) throw io_error("adopt", "descriptor " + std::to_string(fd), errno);
  return {std::move(owned), io::stream_kind::pipe};
}

pipe_stream pipe_stream::standard_input() { return {io::descriptor::borrow(STDIN_FILENO), io::stream_kind::shared}; }

pipe_stream pipe_stream::standard_output() {
  ignore_broken_pipes();
  return {io::descriptor::borrow(STDOUT_FILENO), io::stream_kind::shared};
}

}  // namespace troupe
