// Child processes: started, talked to by pipes, and awaited.
#pragma once

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
  // It exited by itself, with 0.
  bool success() const noexcept { return !by_signal_ && number_ == 0; }
  // What it exited with; empty when a signal ended it.
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

// What one of a child's standard streams is.
class child_stream {
 public:
  static child_stream inherit() noexcept { return child_stream(from::inherited, -1); }
  // /dev/null.
  static child_stream null() noexcept { return child_stream(from::null, -1); }
  // Its other end is the process object's: in(), out(), err().
  static child_stream pipe() noexcept { return child_stream(from::pipe, -1); }
  // That descriptor, which stays the caller's, and open until start() has returned.
  static child_stream descriptor(int fd) noexcept { return child_stream(from::descriptor, fd); }

 private:
  friend class process;
  enum class from : unsigned char { inherited, null, pipe, descriptor };
  child_stream(from source, int fd) noexcept : from_(source), fd_(fd) {}
  from from_;
  int fd_;
};

// Of process::start().
//
// Example:
//     troupe::process_options quiet;
//     quiet.out = troupe::child_stream::null();
struct process_options {
  child_stream in = child_stream::inherit();
  child_stream out = child_stream::inherit();
  child_stream err = child_stream::inherit();
  // "NAME=value" each. Default: this process' own.
  std::optional<std::vector<std::string>> environment{};
  // Where it starts. Default: where this process is.
  std::string directory{};
  // True: a session of its own, whose process group has its number: signals of the terminal do not
  // reach it. Default false.
  bool new_session = false;
};

namespace io {

struct child;  // of a process that was started; it is reaped once, whoever does it

class exit_job {
 public:
  using result = exit_status;
  static constexpr action what = action::readable;
  explicit exit_job(std::shared_ptr<child> of) noexcept : of_(std::move(of)) {}
  descriptor& prepare(operation_suspension& wait);
  exit_status finish(operation_suspension& wait);

 private:
  std::shared_ptr<child> of_;
  descriptor asked_;
};

}  // namespace io

// A child process. Move-only. The child has the signals' default effects and no descriptor but the
// three; of a program that another thread starts meanwhile it may be otherwise, if that was opened
// without O_CLOEXEC.
//
// When the object goes the child runs on, and is reaped in the background as soon as it ends, so
// that no zombie is left; its pipes are closed. To end it with the object use kill() first. Needs
// pidfd_open (Linux 5.3). Under the simulated policy children are the machine's own, and waiting
// for them takes real time.
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
  process() = default;  // none was started

  // Looks the program up in PATH, unless there is a slash in it; `arguments` are those behind the
  // name. Blocks until the child has begun to run the program: about a millisecond. Any thread.
  // Throws io_error, which names the program: no_such_file_or_directory, permission_denied, …; the
  // directory's is meant when that is not there. Throws option_error for a text with a zero byte in
  // it.
  static process start(const std::string& program, const std::vector<std::string>& arguments = {},
                       const process_options& options = {});

  // Until it has ended, in a handler or a task; with .timeout(span) and .stop(token) if you like,
  // which leave it as it is: wait again. Any number may wait; when it has ended all get the same at
  // once, and later ones, too. Throws timed_out, cancelled, io_error (no_child_process: the program
  // has reaped it elsewhere, or ignores SIGCHLD).
  io::awaitable<io::exit_job> wait() { return io::awaitable<io::exit_job>(std::in_place, child_); }

  // Sends it a signal. False when it has ended, and never another process' by its number. Throws
  // io_error.
  bool kill(int signal = SIGKILL);

  // The pipes of process_options: written to, and read from. Not open where there is none.
  pipe_stream& in() noexcept { return in_; }
  pipe_stream& out() noexcept { return out_; }
  pipe_stream& err() noexcept { return err_; }

  // Its number; 0 when none was started.
  pid_t id() const noexcept;

 private:
  std::shared_ptr<io::child> child_;
  pipe_stream in_, out_, err_;
};

}  // namespace troupe
