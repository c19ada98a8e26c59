// Pipes, and the standard input and output.
#pragma once

#include <utility>

#include "troupe/io/stream.hpp"

namespace troupe {

// One end of a pipe, or a descriptor that was opened elsewhere and is read and written like one: a
// device, a terminal. Reads of the writing end, and writes to the reading end, throw io_error. The
// first one of a process that is made turns off the signal SIGPIPE, unless the program handles it:
// a write to a pipe that nobody reads is an io_error (broken_pipe).
//
// Example (declarations):
//     troupe::task<> answer() {
//       troupe::pipe_stream in = troupe::pipe_stream::standard_input();
//       std::array<char, 256> line;
//       const std::size_t bytes = co_await in.read(line);
//       std::cout << "you said " << std::string_view(line.data(), bytes);
//     }
class pipe_stream : public stream {
 public:
  pipe_stream() = default;

  // {to read from, to write to}. Throws io_error.
  static std::pair<pipe_stream, pipe_stream> make();
  // Owns it from now on, and makes it non-blocking. Throws io_error.
  static pipe_stream adopt(int fd);
  // Shared with other processes, it stays as it is, and open. Each reading call reads once when
  // there is something.
  static pipe_stream standard_input();
  static pipe_stream standard_output();

 private:
  pipe_stream(io::descriptor&& open, io::stream_kind kind) noexcept
      : stream(std::move(open), kind) {}
};

}  // namespace troupe
