// postgres_server: a PostgreSQL server of the test program's own, in a folder of its own. All tests
// share it; it ends with the program, also when the program is killed.
#pragma once

#include <string>

namespace troupe::test {

class postgres_server {
 public:
  // Started by the first call. Without PostgreSQL on the machine why_not() is not empty.
  static postgres_server& get();
  const std::string& why_not() const noexcept { return why_not_; }

  // A database that exists, with this many characters of its name in front of the test's own.
  std::string target(const std::string& more = {}) const;      // through a Unix socket
  std::string tcp_target(const std::string& more = {}) const;  // through 127.0.0.1, with TLS
  const std::string& folder() const noexcept { return folder_; }

  std::string port() const { return std::to_string(port_); }
  void kill_server();   // at once, without a word to anyone
  void stop_server();   // as an administrator does
  void crash_server();  // all its processes at once; what they were at is not finished
  void start_server();
  // A second server that has each commit before it is answered, and takes the place of the first
  // one when that has crashed. At the end the first one is there again, as it was then.
  void start_standby();
  void fail_over();
  void end_standby();
  // Ends the standby while the first server runs on.
  void stop_standby();
  std::string target_of_both(const std::string& more = "target_session_attrs=read-write") const;
  // A PgBouncer in transaction mode with two connections to the server. It ends with the program.
  // False: it is not installed (Debian: pgbouncer).
  bool start_pooler();
  std::string pooler_target(const std::string& more = {}) const;
  // Runs a statement by libpq itself, and gives its first value.
  std::string sql(const std::string& text) const;

 private:
  postgres_server();
  bool run(const std::string& command) const;
  int server_id() const;

  std::string folder_, why_not_, as_;
  int port_ = 0;
  bool has_pooler_ = false;
};

}  // namespace troupe::test
