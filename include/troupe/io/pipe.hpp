// pipe: pipes, and standard input and output.
#pragma once

#include "troupe/base/language.hpp"

#include <utility>

#include "troupe/io/stream.hpp"

namespace troupe {

// One end of a pipe, or a descriptor that was opened elsewhere and is used like one: a device, a
// terminal. Errors: a read of the writing end, and a write to the reading end, throw io_error. The
// first pipe_stream of a process turns off the signal SIGPIPE, unless the program handles it, so
// that a write to a pipe without a reading end is an io_error (broken_pipe).
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

  // Returns {the end to read from, the end to write to}. Throws io_error.
  static std::pair<pipe_stream, pipe_stream> make();
  // Takes ownership of the descriptor, and makes it non-blocking. Throws io_error.
  static pipe_stream adopt(int fd);
  // A descriptor that is shared with other processes: it stays blocking, and it stays open. Each
  // read call makes one system call, after data has arrived.
  static pipe_stream standard_input();
  static pipe_stream standard_output();

 private:
  pipe_stream(io::descriptor&& open, io::stream_kind kind) noexcept
      : stream(std::move(open), kind) {}
};

}  // namespace troupe
