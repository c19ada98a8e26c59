#include "nats/nats_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace troupe::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* program = "/usr/sbin/nats-server";

bool answers(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  std::array<char, 4> begin{};
  const bool good = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                    ::recv(fd, begin.data(), begin.size(), MSG_WAITALL) == 4 && begin[0] == 'I';
  ::close(fd);
  return good;
}

// A shell that outlives the program by a moment: it reads from a pipe whose other end only this
// program has.
void watch_over(const std::string& folder) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  const std::string script = "read nothing; kill -KILL $(cat '" + folder +
                             "/pid' 2> /dev/null) 2> /dev/null; sleep 0.2; rm -rf '" + folder + "'";
  if (::fork() == 0) {
    ::setsid();
    ::dup2(ends[0], 0);
    ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[0]);  // the other end is closed by the end of the program
}

}  // namespace

bool nats_server::is_installed() { return fs::exists(program); }

int nats_server::free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd, any, bytes) != 0 || ::getsockname(fd, any, &bytes) != 0) std::abort();
  ::close(fd);
  return ntohs(address.sin_port);
}

nats_server::nats_server(std::string config, const files& with) {
  std::string name = (fs::temp_directory_path() / "troupe-nats-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  folder_ = name;
  watch_over(folder_);
  for (std::size_t at = config.find("FOLDER"); at != std::string::npos; at = config.find("FOLDER"))
    config.replace(at, 6, folder_);
  write_file("config", config + "\n");
  for (const auto& [file, text] : with) write_file(file, text);
  start();
}

nats_server::~nats_server() {
  kill();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void nats_server::write_file(const std::string& name, const std::string& text) const {
  std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
}

std::string nats_server::url(const std::string& user, const std::string& scheme) const {
  return scheme + "://" + (user.empty() ? "" : user + "@") + "127.0.0.1:" + std::to_string(port_);
}

void nats_server::start() {
  const bool again = port_ != 0;
  for (int tries = 0; tries < 50; ++tries) {
    if (!again) port_ = free_port();
    const std::string port = std::to_string(port_), config = folder_ + "/config",
                      pid = folder_ + "/pid", log = folder_ + "/log";
    process_ = ::fork();
    if (process_ == 0) {
      ::execl(program, "nats-server", "-a", "127.0.0.1", "-p", port.c_str(), "-c", config.c_str(),
              "-P", pid.c_str(), "-l", log.c_str(), nullptr);
      ::_exit(127);
    }
    for (;;) {
      if (answers(port_)) return;
      if (::waitpid(process_, nullptr, WNOHANG) != 0) break;  // the port was taken meanwhile
      // sleeps: until another process listens
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    process_ = 0;
    // sleeps: until another process has freed the port
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::fprintf(stderr, "nats-server does not start:\n");
  static_cast<void>(std::system(("cat " + folder_ + "/log >&2").c_str()));
  std::abort();
}

void nats_server::end(int signal) {
  if (process_ == 0) return;
  ::kill(process_, signal);
  ::waitpid(process_, nullptr, 0);
  process_ = 0;
}
void nats_server::kill() { end(SIGKILL); }
void nats_server::pause() {
  ::kill(process_, SIGSTOP);
  ::waitpid(process_, nullptr, WUNTRACED);
}
void nats_server::resume() { ::kill(process_, SIGCONT); }

}  // namespace troupe::test
