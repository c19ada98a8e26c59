// process: starts child processes, talks to them through pipes, and waits for their end.
#pragma once

#include "troupe/base/language.hpp"

#include <sys/types.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/io/pipe.hpp"
#include "troupe/io/ready.hpp"

namespace troupe {

// How a process ended.
//
// Example:
//     troupe::exit_status status(0, false);
//     std::cout << status.to_string() << ' ' << status.success() << '\n';  // exited with 0 1
class exit_status {
 public:
  exit_status(int number, bool by_signal) noexcept : number_(number), by_signal_(by_signal) {}
  // Whether the process exited by itself, with 0.
  bool success() const noexcept { return !by_signal_ && number_ == 0; }
  // The exit code; empty if a signal ended the process.
  std::optional<int> code() const noexcept {
    return by_signal_ ? std::nullopt : std::optional(number_);
  }
  std::optional<int> signal() const noexcept {
    return by_signal_ ? std::optional(number_) : std::nullopt;
  }
  // "exited with 3", "killed by signal 9 (Killed)".
  std::string to_string() const;
  friend bool operator==(const exit_status&, const exit_status&) noexcept = default;

 private:
  int number_;
  bool by_signal_;
};

// The object to which one of a child's standard streams is connected.
class child_stream {
 public:
  static child_stream inherit() noexcept { return child_stream(from::inherited, -1); }
  // /dev/null.
  static child_stream null() noexcept { return child_stream(from::null, -1); }
  // A pipe, whose other end is in the process object: in(), out(), err().
  static child_stream pipe() noexcept { return child_stream(from::pipe, -1); }
  // That descriptor, which the caller keeps, and must keep open until start() has returned.
  static child_stream descriptor(int fd) noexcept { return child_stream(from::descriptor, fd); }

 private:
  friend class process;
  enum class from : unsigned char { inherited, null, pipe, descriptor };
  child_stream(from source, int fd) noexcept : from_(source), fd_(fd) {}
  from from_;
  int fd_;
};

// Options of process::start().
//
// Example:
//     troupe::process_options quiet;
//     quiet.out = troupe::child_stream::null();
struct process_options {
  child_stream in = child_stream::inherit();
  child_stream out = child_stream::inherit();
  child_stream err = child_stream::inherit();
  // Each is "NAME=value". Default: the environment of this process.
  std::optional<std::vector<std::string>> environment{};
  // The child's working directory. Default: this process's.
  std::string directory{};
  // True: the child gets a session of its own, whose process group has the child's number: signals
  // of the terminal do not reach it. Default false.
  bool new_session = false;
  // Further descriptors that the child gets, as 3, 4, … in this order. The caller keeps them, and
  // must keep them open until start() has returned. Default: none.
  std::vector<int> descriptors{};
};

namespace io {

struct child;  // a started process; it is reaped exactly once

class exit_job {
 public:
  using result = exit_status;
  static constexpr action opcode = action::readable;
  explicit exit_job(std::shared_ptr<child> child) noexcept : child_(std::move(child)) {}
  descriptor& prepare(operation_suspension& wait);
  exit_status finish(operation_suspension& wait);

 private:
  std::shared_ptr<child> child_;
  descriptor asked_;
};

}  // namespace io

// A child process. Move-only. The child starts with the default effects of all signals and with
// only its three standard descriptors and those that the options name. If another thread starts a
// program at the same time, that program may inherit descriptors that were opened without
// O_CLOEXEC.
//
// Lifetime: when the object is destroyed, its pipes are closed and the child keeps running; the
// library reaps the child in the background when it ends, and no zombie is left. To end the child
// with the object, call kill() first. Needs pidfd_open (Linux 5.3). Under the simulated policy
// children are real, and waiting for them takes real time.
//
// Example (declarations):
//     troupe::task<std::string> sorted(std::string lines) {
//       troupe::process_options piped;
//       piped.in = piped.out = troupe::child_stream::pipe();
//       troupe::process sort = troupe::process::start("sort", {"-u"}, piped);
//       co_await sort.in().write_all(std::move(lines));
//       sort.in().close();
//       std::string all;
//       std::array<char, 4096> part;
//       for (;;) {
//         const std::size_t bytes = co_await sort.out().read(part);
//         if (bytes == 0) break;
//         all.append(part.data(), bytes);
//       }
//       const troupe::exit_status ended = co_await sort.wait();
//       co_return ended.success() ? all : ended.to_string();
//     }
class process {
 public:
  process() = default;  // no process

  // Starts a program. Looks it up in PATH, unless its name contains a slash. `arguments` does not
  // include the program's name. Thread: any. Cost: blocks until the child has begun to run the
  // program, about a millisecond. Errors: io_error, which names the program:
  // no_such_file_or_directory, permission_denied, …; it names the directory if that does not exist.
  // option_error for a text that contains a zero byte.
  static process start(const std::string& program, const std::vector<std::string>& arguments,
                       const process_options& options);
  static process start(const std::string& program, const std::vector<std::string>& arguments) {
    return start(program, arguments, process_options());
  }
  static process start(const std::string& program) {
    return start(program, std::vector<std::string>());
  }

  // Completes when the process has ended. Await it in a handler or a task, optionally with
  // .timeout(span) and .stop(token), which do not affect the process: you may wait again. Any
  // number of callers may wait; all get the same status at the same time, and so do later calls.
  // Errors: timed_out, cancelled, io_error (no_child_process: the program has reaped it elsewhere,
  // or ignores SIGCHLD).
  io::awaitable<io::exit_job> wait() { return io::awaitable<io::exit_job>(std::in_place, child_); }

  // Sends it a signal. Returns false if the process has ended; it never signals another process
  // that has got the same number. Throws io_error.
  bool kill(int signal = SIGKILL);

  // The child's pipes, if process_options asked for them: write to in(), read from out() and err().
  // Otherwise not open.
  pipe_stream& in() noexcept { return in_; }
  pipe_stream& out() noexcept { return out_; }
  pipe_stream& err() noexcept { return err_; }

  // The process number; 0 if there is no process.
  pid_t id() const noexcept;

 private:
  std::shared_ptr<io::child> child_;
  pipe_stream in_, out_, err_;
};

}  // namespace troupe
