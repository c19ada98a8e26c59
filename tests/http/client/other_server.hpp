// A server of another project for a test: a program on loopback, which ends with this one.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace troupe::test {

class other_server {
 public:
  // `arguments`: the program's path and arguments, for a port that is free now.
  using command = std::function<std::vector<std::string>(int port)>;
  explicit other_server(const command& arguments) {
    for (int tries = 0; tries < 50; ++tries) {
      port_ = free_port();
      start(arguments(port_));
      for (;;) {
        if (answers()) return;
        if (::waitpid(process_, nullptr, WNOHANG) != 0) break;  // the port was taken meanwhile
        // sleeps: until another process listens
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    }
    std::abort();
  }
  other_server(const other_server&) = delete;
  other_server& operator=(const other_server&) = delete;
  ~other_server() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  int port() const noexcept { return port_; }

 private:
  static sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return address;
  }
  static int free_port() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(0);
    socklen_t bytes = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(fd, any, bytes) != 0 || ::getsockname(fd, any, &bytes) != 0) std::abort();
    ::close(fd);
    return ntohs(address.sin_port);
  }
  bool answers() const {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(port_);
    const bool good = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::close(fd);
    return good;
  }
  void start(std::vector<std::string> arguments) {
    std::vector<char*> all;
    for (std::string& one : arguments) all.push_back(one.data());
    all.push_back(nullptr);
    process_ = ::fork();
    if (process_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::execv(all.front(), all.data());
    ::_exit(127);
  }

  int port_ = 0;
  pid_t process_ = 0;
};

}  // namespace troupe::test
