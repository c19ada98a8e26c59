// A NATS server of its own for a test, on loopback, in a temporary folder.
#pragma once

#include <signal.h>

#include <string>
#include <utility>
#include <vector>

#include "support/servers/server_process.hpp"

namespace troupe::test {

class nats_server {
 public:
  static bool is_installed();

  // `config`: lines of its configuration; FOLDER stands for its folder, in which these files are.
  // Starts it.
  using files = std::vector<std::pair<std::string, std::string>>;
  explicit nats_server(std::string config = {}, const files& with = {});
  nats_server(const nats_server&) = delete;
  nats_server& operator=(const nats_server&) = delete;
  ~nats_server();

  // "nats://127.0.0.1:4222"; the same after a restart.
  std::string url(const std::string& user = {}, const std::string& scheme = "nats") const;
  int port() const noexcept { return process_.port(); }
  const std::string& folder() const noexcept { return folder_; }
  void write_file(const std::string& name, const std::string& text) const;

  void start();
  // At once, without a word to anyone.
  void kill() { process_.end(SIGKILL); }
  // As an administrator does.
  void end(int signal) { process_.end(signal); }
  void pause() { process_.pause(); }
  void resume() { process_.resume(); }

 private:
  std::string folder_;
  server_process process_{server_process::life::of_program, "INFO"};
};

}  // namespace troupe::test
