// For tests of observed programs: a connection to the process's own socket, and a folder for it.
#pragma once

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "support/conformance.hpp"

namespace troupe::test {

using nlohmann::json;

// A connection to this process's own socket.
class asker {
 public:
  asker() : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    ::sockaddr_un at = {};
    at.sun_family = AF_UNIX;
    const std::string path = path_of_socket();
    std::copy(path.begin(), path.end(), at.sun_path);
    const ::timeval patience{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    is_open_ = ::connect(fd_, static_cast<const ::sockaddr*>(static_cast<const void*>(&at)),
                         sizeof at) == 0;
  }
  asker(const asker&) = delete;
  ~asker() { ::close(fd_); }

  static std::string path_of_socket() {
    return std::string(std::getenv("XDG_RUNTIME_DIR")) + "/troupe/" + std::to_string(::getpid()) +
           ".sock";
  }
  bool is_open() const { return is_open_; }
  void say(const std::string& text) const {
    EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // The next line; empty at the end.
  std::string hear() {
    for (;;) {
      const std::size_t end = heard_.find('\n');
      if (end != std::string::npos) {
        std::string line = heard_.substr(0, end);
        heard_.erase(0, end + 1);
        return line;
      }
      char bytes[65536];
      const auto got = ::recv(fd_, bytes, sizeof bytes, 0);
      if (got <= 0) return "";
      heard_.append(bytes, static_cast<std::size_t>(got));
    }
  }
  json ask(const std::string& question) {
    say(question + "\n");
    return json::parse(hear());
  }

 private:
  int fd_;
  bool is_open_ = false;
  std::string heard_;
};

class observed_runtimes : public conformance {
 protected:
  observed_runtimes() {
    std::string pattern = (std::filesystem::temp_directory_path() / "observingXXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    ::setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
  }
  ~observed_runtimes() override {
    ::unsetenv("XDG_RUNTIME_DIR");
    std::filesystem::remove_all(folder_);
  }
  runtime_options observed() const {
    runtime_options chosen = options();
    chosen.observe = true;
    chosen.failure_lines = 0;
    return chosen;
  }

 private:
  std::string folder_;
};

inline const json& named(const json& list, const char* key, const std::string& name) {
  for (const json& one : list) {
    if (one[key].get<std::string>().ends_with(name)) return one;
  }
  ADD_FAILURE() << name << " is not in " << list;
  static const json none = json::object();
  return none;
}
inline json handler_of(const json& runtime, const char* of_class, const char* handler) {
  return named(named(runtime["classes"], "class", of_class)["handlers"], "handler", handler);
}

}  // namespace troupe::test
