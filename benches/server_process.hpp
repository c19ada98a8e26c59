// server_process: the server of a contestant, which a load generator on CPU 1 starts on CPU 0, and
// its costs.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace load {

// These throw, so that the server is ended and temporary folders are removed. fail() is for
// failures of the system.
[[noreturn]] inline void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}
[[noreturn]] inline void refuse(const std::string& why) { throw std::runtime_error(why); }

// Returns the exit status of `body`. If it throws, prints the exception to standard error and
// returns 1.
template <class Body>
int run_main(const Body& body) {
  try {
    return body();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}

inline void pin(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

inline std::int64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// Raises the limit of descriptors to what the system allows. The server inherits it.
inline void allow_many_files() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

// Runs a server that prints the port on which it listens, or will listen soon, and serves until it
// is killed.
class server_process {
 public:
  explicit server_process(char** command) {
    std::array<int, 2> out{};
    if (::pipe(out.data()) < 0) fail("pipe");
    id_ = ::fork();
    if (id_ == 0) {
      pin(0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // also when this process is killed
      ::dup2(out[1], STDOUT_FILENO);
      ::close(out[0]);
      ::execvp(command[0], command);
      std::perror(command[0]);
      ::_exit(1);
    }
    ::close(out[1]);
    std::FILE* said = ::fdopen(out[0], "r");
    if (std::fscanf(said, "%d", &port_) != 1) refuse("the server names no port");
  }
  server_process(const server_process&) = delete;
  ~server_process() {
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }

  // Returns a connected, non-blocking socket. Waits up to ten seconds for a server that does not
  // listen yet.
  int connect() const {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(port_));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (const std::int64_t until = now_ns() + 10'000'000'000;;) {
      const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (fd < 0) fail("socket");
      if (::connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0) {
        const int yes = 1;
        ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        ::fcntl(fd, F_SETFL, O_NONBLOCK);
        return fd;
      }
      if (errno != ECONNREFUSED || now_ns() > until) fail("connect");
      ::close(fd);
      ::usleep(10'000);
    }
  }

  // CPU time of all threads of the server.
  std::int64_t cpu_ns() const {
    clockid_t clock{};
    ::clock_getcpuclockid(id_, &clock);
    return now_ns(clock);
  }
  long rss_kb() const {
    std::FILE* file = std::fopen(("/proc/" + std::to_string(id_) + "/status").c_str(), "r");
    if (file == nullptr) refuse("the server has ended");
    long kb = 0;
    for (char line[256]; std::fgets(line, sizeof line, file) != nullptr;)
      std::sscanf(line, "VmRSS: %ld", &kb);
    std::fclose(file);
    return kb;
  }

 private:
  pid_t id_ = 0;
  int port_ = 0;
};

// Sorts the values. `part`: 0.99 is the 99th percentile.
inline double percentile_us(std::vector<std::int64_t>& of_ns, double part) {
  if (of_ns.empty()) return 0;
  std::sort(of_ns.begin(), of_ns.end());
  return static_cast<double>(
             of_ns[static_cast<std::size_t>(part * static_cast<double>(of_ns.size() - 1))]) /
         1e3;
}

}  // namespace load
