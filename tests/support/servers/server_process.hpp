// server_process: a server of another project for a test, as a process on loopback.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::test {

inline sockaddr_in on_loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

// A port that is free now; another process may take it.
inline int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = on_loopback(0);
  socklen_t bytes = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd, any, bytes) != 0 || ::getsockname(fd, any, &bytes) != 0) std::abort();
  ::close(fd);
  return ntohs(address.sin_port);
}

// Whether a process accepts connections there, and begins with these words.
inline bool is_served(int port, const std::string& words = {}) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = on_loopback(port);
  std::string begin(words.size(), '\0');
  const auto* const any = reinterpret_cast<const sockaddr*>(&address);
  const bool good = ::connect(fd, any, sizeof address) == 0 &&
                    (words.empty() || ::recv(fd, begin.data(), begin.size(), MSG_WAITALL) ==
                                          static_cast<ssize_t>(words.size())) &&
                    begin == words;
  ::close(fd);
  return good;
}

// A shell that outlives the program by a moment, and runs the script then: it reads from a pipe
// whose other end only this program has.
inline void run_after_end(const std::string& script) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  const std::string all = "read nothing; " + script;
  if (::fork() == 0) {
    ::setsid();
    ::dup2(ends[0], 0);
    ::execl("/bin/sh", "sh", "-c", all.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[0]);  // the other end is closed by the end of the program
}

class server_process {
 public:
  // The program's path and arguments, for a port.
  using command = std::function<std::vector<std::string>(int port)>;
  // Whether the server still runs when the thread that has started it has ended.
  enum class life : std::uint8_t { of_thread, of_program };

  explicit server_process(life lasts = life::of_program, std::string greeting = {})
      : lasts_(lasts), greeting_(std::move(greeting)) {}
  // A server that needs nothing but a port.
  explicit server_process(const command& arguments) : server_process(life::of_thread) {
    if (!start(arguments)) std::abort();
  }
  server_process(const server_process&) = delete;
  server_process& operator=(const server_process&) = delete;
  ~server_process() { end(SIGKILL); }

  // At a free port, or again at the port of before. Returns false if the server does not start.
  bool start(const command& arguments) {
    const bool again = port_ != 0;
    for (int tries = 0; tries < 50; ++tries) {
      if (!again) port_ = free_port();
      launch(arguments(port_));
      for (;;) {
        if (is_served(port_, greeting_)) return true;
        if (::waitpid(process_, nullptr, WNOHANG) != 0) break;  // the port was taken meanwhile
        // sleeps: until another process listens
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      process_ = 0;
      // sleeps: until another process has freed the port
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }
  void end(int signal) {
    if (process_ == 0) return;
    ::kill(process_, signal);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  void pause() {
    ::kill(process_, SIGSTOP);
    ::waitpid(process_, nullptr, WUNTRACED);
  }
  void resume() { ::kill(process_, SIGCONT); }
  int port() const noexcept { return port_; }

 private:
  void launch(std::vector<std::string> arguments) {
    std::vector<char*> all;
    for (std::string& argument : arguments) all.push_back(argument.data());
    all.push_back(nullptr);
    process_ = ::fork();
    if (process_ != 0) return;
    if (lasts_ == life::of_thread) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::execv(all.front(), all.data());
    ::_exit(127);
  }

  const life lasts_;
  const std::string greeting_;
  int port_ = 0;
  pid_t process_ = 0;
};

}  // namespace troupe::test
