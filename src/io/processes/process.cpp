#include "troupe/io/process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>

#include "base/text/zero_byte.hpp"
#include "io/processes/reaper.hpp"
#include "troupe/io/error.hpp"

namespace troupe {
namespace io {

struct child {
  child(pid_t number, int descriptor, std::string program) noexcept
      : pid(number), pidfd(descriptor), name(std::move(program)) {}
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  ~child() {
    if (pidfd < 0) return;
    if (ended || lost) {
      ::close(pidfd);
    } else {
      reap_in_background(pidfd);
    }
  }

  // Returns how the child ended, if it has ended. The first call after that reaps it.
  std::optional<exit_status> poll() {
    std::lock_guard lock(mutex);
    if (ended) return ended;
    if (lost) throw io_error("process::wait", name, ECHILD);
    siginfo_t how{};
    int result = -1;
    do result = ::waitid(P_PIDFD, static_cast<id_t>(pidfd), &how, WEXITED | WNOHANG);
    while (result < 0 && errno == EINTR);
    if (result < 0) {
      const int number = errno;
      lost = number == ECHILD;
      throw io_error("process::wait", name, number);
    }
    if (how.si_pid != 0) ended.emplace(how.si_status, how.si_code != CLD_EXITED);
    return ended;
  }

  const pid_t pid;
  const int pidfd;
  const std::string name;
  std::mutex mutex;
  std::optional<exit_status> ended;
  bool lost = false;  // code outside of this class has reaped it
};

descriptor& exit_job::prepare(operation_suspension&) {
  if (child_ == nullptr)
    throw usage_error(
        "troupe: process::wait: no process was started, or the object was moved from; call "
        "process::start() first");
  asked_ = descriptor::borrow(child_->pidfd);
  return asked_;
}

exit_status exit_job::finish(operation_suspension& wait) {
  wait.check("process::wait");
  asked_.close();
  // The descriptor is readable: the child has ended.
  if (const std::optional<exit_status> status = child_->poll()) return *status;
  throw io_error("process::wait", child_->name, ECHILD);
}

}  // namespace io

namespace {

// Closes the descriptor at the end of the scope, unless take() was called.
class owned_fd {
 public:
  owned_fd() = default;
  explicit owned_fd(int fd) noexcept : fd_(fd) {}
  owned_fd(const owned_fd&) = delete;
  owned_fd& operator=(const owned_fd&) = delete;
  ~owned_fd() { reset(-1); }
  void reset(int fd) noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }
  int get() const noexcept { return fd_; }
  int take() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

constexpr int first_free = 3;  // the first number behind the standard streams

int checked(int result, const char* call, const std::string& program) {
  if (result < 0) throw io_error(literal::of_table(call), program, errno);
  return result;
}

// One standard stream of the child, and our end of its pipe. The child's ends have numbers above 2,
// so that copying one of them to a standard stream cannot overwrite another.
struct wired {
  owned_fd theirs, ours;
};

void give_pipe(wired& wired, bool child_reads, const std::string& program) {
  std::array<int, 2> ends{};
  checked(::pipe2(ends.data(), O_CLOEXEC), "pipe", program);
  const owned_fd low(ends[child_reads ? 0 : 1]);
  wired.ours.reset(ends[child_reads ? 1 : 0]);
  wired.theirs.reset(checked(::fcntl(low.get(), F_DUPFD_CLOEXEC, first_free), "fcntl", program));
}

// For posix_spawn: the actions of the child before it runs the program.
class spawning {
 public:
  spawning() {
    number(::posix_spawn_file_actions_init(&actions_));
    number(::posix_spawnattr_init(&attributes_));
  }
  spawning(const spawning&) = delete;
  spawning& operator=(const spawning&) = delete;
  ~spawning() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  void put(int fd, int as) { number(::posix_spawn_file_actions_adddup2(&actions_, fd, as)); }
  void go_to(const std::string& directory) {
    number(::posix_spawn_file_actions_addchdir_np(&actions_, directory.c_str()));
  }
  // `kept`: descriptors behind the standard streams.
  void begin_afresh(bool new_session, int kept) {
    number(::posix_spawn_file_actions_addclosefrom_np(&actions_, first_free + kept));
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    const int flags =
        POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (new_session ? POSIX_SPAWN_SETSID : 0);
    ::posix_spawnattr_setflags(&attributes_, static_cast<short>(flags));
  }
  // Returns the child's process id, or -errno.
  int start(const std::string& program, char* const* arguments, char* const* environment) noexcept {
    pid_t child = 0;
    const int result =
        ::posix_spawnp(&child, program.c_str(), &actions_, &attributes_, arguments, environment);
    return result == 0 ? child : -result;
  }

 private:
  static void number(int result) {
    if (result != 0) throw std::bad_alloc();  // the only possible error
  }
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// The child's descriptors behind its standard streams. The copies have numbers behind the child's
// numbers, so that none overwrites another.
std::vector<owned_fd> give_descriptors(spawning& how, const std::vector<int>& all,
                                       const std::string& program) {
  std::vector<owned_fd> copies(all.size());
  const int count = static_cast<int>(all.size());
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    copies[at].reset(checked(::fcntl(all[at], F_DUPFD_CLOEXEC, first_free + count),
                             "process::start: a descriptor for", program));
    how.put(copies[at].get(), first_free + i);
  }
  return copies;
}

void check_no_zero(const std::string& text, const char* name) {
  base::refuse_zero_byte(text, "process::start", name);
}

std::vector<char*> pointers(const std::vector<std::string>& texts, const std::string* first) {
  std::vector<char*> result;
  result.reserve(texts.size() + 2);
  if (first != nullptr) result.push_back(const_cast<char*>(first->c_str()));
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

[[noreturn]] void refuse(const std::string& program, const process_options& options, int number) {
  struct stat found {};
  const bool no_directory =
      !options.directory.empty() &&
      (::stat(options.directory.c_str(), &found) != 0 || !S_ISDIR(found.st_mode));
  throw io_error("process::start", no_directory ? program + ", in " + options.directory : program,
                 number);
}

}  // namespace

std::string exit_status::to_string() const {
  const std::string number = std::to_string(number_);
  return by_signal_ ? "killed by signal " + number + " (" + ::strsignal(number_) + ")"
                    : "exited with " + number;
}

process process::start(const std::string& program, const std::vector<std::string>& arguments,
                       const process_options& options) {
  check_no_zero(program, "the program's name");
  for (const std::string& argument : arguments) check_no_zero(argument, "an argument");
  if (options.environment) {
    for (const std::string& variable : *options.environment)
      check_no_zero(variable, "a variable of the environment");
  }
  check_no_zero(options.directory, "the directory");
  spawning how;
  std::array<wired, 3> streams;
  const child_stream chosen[] = {options.in, options.out, options.err};
  for (int i = 0; i < 3; ++i) {
    const child_stream& wanted = chosen[i];
    wired& wired = streams[static_cast<std::size_t>(i)];
    switch (wanted.from_) {
      case child_stream::from::inherited:
        continue;
      case child_stream::from::pipe:
        give_pipe(wired, i == STDIN_FILENO, program);
        break;
      case child_stream::from::null: {
        const owned_fd low(checked(::open("/dev/null", O_RDWR | O_CLOEXEC), "open", "/dev/null"));
        wired.theirs.reset(
            checked(::fcntl(low.get(), F_DUPFD_CLOEXEC, first_free), "fcntl", program));
        break;
      }
      case child_stream::from::descriptor:
        wired.theirs.reset(checked(::fcntl(wanted.fd_, F_DUPFD_CLOEXEC, first_free),
                                   "process::start: a descriptor for", program));
        break;
    }
    how.put(wired.theirs.get(), i);
  }
  if (!options.directory.empty()) how.go_to(options.directory);
  const std::vector<owned_fd> copies = give_descriptors(how, options.descriptors, program);
  how.begin_afresh(options.new_session, static_cast<int>(copies.size()));

  const std::vector<char*> words = pointers(arguments, &program);
  const std::vector<char*> own =
      options.environment ? pointers(*options.environment, nullptr) : std::vector<char*>();
  process started;
  for (int i = 0; i < 3; ++i) {
    wired& wired = streams[static_cast<std::size_t>(i)];
    pipe_stream* const end[] = {&started.in_, &started.out_, &started.err_};
    if (wired.ours.get() >= 0) *end[i] = pipe_stream::adopt(wired.ours.take());
  }
  const int pid = how.start(program, words.data(), options.environment ? own.data() : environ);
  if (pid < 0) refuse(program, options, -pid);

  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  const int number = errno;
  try {
    if (pidfd < 0) throw io_error("pidfd_open", program, number);
    started.child_ = std::make_shared<io::child>(pid, pidfd, program);
  } catch (...) {
    // Without a pidfd the program could not wait for the child.
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    if (pidfd >= 0) ::close(pidfd);
    throw;
  }
  return started;
}

bool process::kill(int signal) {
  if (child_ == nullptr)
    throw usage_error(
        "troupe: process::kill: no process was started, or the object was moved from; call "
        "process::start() first");
  if (child_->poll()) return false;
  if (::syscall(SYS_pidfd_send_signal, child_->pidfd, signal, nullptr, 0) == 0) return true;
  if (errno == ESRCH) return false;
  throw io_error("process::kill", child_->name, errno);
}

pid_t process::id() const noexcept { return child_ == nullptr ? 0 : child_->pid; }

}  // namespace troupe
