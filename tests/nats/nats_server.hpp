// A NATS server of its own for a test, on loopback, in a temporary folder.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

class nats_server {
 public:
  static bool is_installed();
  static int free_port();

  // `config`: lines of its configuration; FOLDER stands for its folder, in which these files are.
  // Starts it.
  using files = std::vector<std::pair<std::string, std::string>>;
  explicit nats_server(std::string config = {}, const files& with = {});
  nats_server(const nats_server&) = delete;
  nats_server& operator=(const nats_server&) = delete;
  ~nats_server();

  // "nats://127.0.0.1:4222"; the same after a restart.
  std::string url(const std::string& user = {}, const std::string& scheme = "nats") const;
  int port() const noexcept { return port_; }
  const std::string& folder() const noexcept { return folder_; }
  void write_file(const std::string& name, const std::string& text) const;

  void start();
  void kill();           // at once, without a word to anyone
  void end(int signal);  // as an administrator does
  void pause();
  void resume();

 private:
  std::string folder_;
  int port_ = 0;
  pid_t process_ = 0;
};

}  // namespace troupe::test
