#include "exploring/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "sched/exploring/seen_file.hpp"
#include "trust/failure.hpp"

namespace troupe_tool {
namespace exploring = troupe::sched::exploring;
namespace {

// Between fork() and exec() nothing may allocate: the texts are made before.
struct start {
  std::vector<char*> words, variables;
  std::vector<std::string> kept;
  std::string output;
};

start prepare(const std::vector<std::string>& program, const std::string& stem) {
  start begun;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!text.starts_with("TROUPE_REPLAY=") && !text.starts_with("TROUPE_EXPLORE="))
      begun.kept.emplace_back(text);
  }
  begun.kept.push_back("TROUPE_REPLAY=" + stem + ".plan");
  begun.kept.push_back("TROUPE_EXPLORE=" + stem + ".seen");
  const std::size_t variables = begun.kept.size();
  begun.kept.insert(begun.kept.end(), program.begin(), program.end());
  for (std::size_t i = 0; i < begun.kept.size(); ++i)
    (i < variables ? begun.variables : begun.words).push_back(begun.kept[i].data());
  begun.words.push_back(nullptr);
  begun.variables.push_back(nullptr);
  begun.output = stem + ".out";
  return begun;
}

[[noreturn]] void become(const start& program, int error) {
  ::setpgid(0, 0);
  const int input = ::open("/dev/null", O_RDONLY);
  const int out = ::open(program.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(input, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  ::execvpe(program.words.front(), program.words.data(), program.variables.data());
  const int reason = errno;
  static_cast<void>(!::write(error, &reason, sizeof reason));
  ::_exit(127);
}

pid_t start_child(const start& program) {
  std::array<int, 2> error{};
  if (::pipe2(error.data(), O_CLOEXEC) != 0)
    throw failure(fmt::format("no pipe for a new process: {}", std::strerror(errno)));
  const pid_t child = ::fork();
  if (child == 0) become(program, error[1]);
  ::close(error[1]);
  int reason = child < 0 ? errno : 0;
  if (child > 0 && ::read(error[0], &reason, sizeof reason) != 0) ::waitpid(child, nullptr, 0);
  ::close(error[0]);
  if (reason != 0)
    throw failure(
        fmt::format("{} cannot be run: {}", program.words.front(), std::strerror(reason)));
  return child;
}

// False if the child was killed because its time was over.
bool wait_for(pid_t child, std::chrono::milliseconds limit, int& status) {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  pollfd ends{fd, POLLIN, 0};
  int ready = -1;
  do {
    ready = ::poll(&ends, 1, static_cast<int>(limit.count()));
  } while (ready < 0 && errno == EINTR);
  ::close(fd);
  // also children of its own that it left
  ::kill(-child, SIGKILL);
  ::waitpid(child, &status, 0);
  return ready != 0;
}

// The line of the output that says most of the failure.
std::string line_of_failure(const std::string& output) {
  constexpr std::array<std::string_view, 6> marks{
      "ERROR: ", "runtime error: ", "what():", "WARNING: ThreadSanitizer", "troupe: ", "Failure"};
  for (const std::string_view mark : marks) {
    const std::size_t at = output.find(mark);
    if (at == std::string::npos) continue;
    const std::size_t begin = output.rfind('\n', at) + 1;
    return output.substr(begin, output.find('\n', at) - begin);
  }
  return "";
}

std::string read_output(const std::string& file) {
  constexpr std::size_t most = 1'000'000;
  std::string text(most, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

}  // namespace

work_folder::work_folder() {
  path_ = (std::filesystem::temp_directory_path() / "troupe-explore-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr)
    throw failure(fmt::format("the folder {} cannot be made: {}", path_, std::strerror(errno)));
}

work_folder::~work_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

exploring::outcome run_child(const std::vector<std::string>& program, const std::string& stem,
                             const exploring::kept_schedule& plan,
                             std::chrono::milliseconds limit) {
  exploring::write_schedule(stem + ".plan", plan);
  std::filesystem::remove(stem + ".seen");
  int status = 0;
  const bool ended = wait_for(start_child(prepare(program, stem)), limit, status);
  std::string text;
  if (!ended) {
    text = fmt::format("it did not end within {} s", static_cast<double>(limit.count()) / 1000);
  } else if (WIFSIGNALED(status)) {
    text = fmt::format("signal: {}", ::strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0) {
    text = fmt::format("exit status {}", WEXITSTATUS(status));
  }
  if (!text.empty()) {
    const std::string line = line_of_failure(read_output(stem + ".out"));
    if (!line.empty()) text += ": " + line;
  }
  return {text, exploring::read_seen(stem + ".seen", plan.plan)};
}

}  // namespace troupe_tool
