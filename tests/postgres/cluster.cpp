#include "postgres/cluster.hpp"

#include <libpq-fe.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "support/servers/server_process.hpp"

namespace troupe::test {
namespace {

namespace fs = std::filesystem;

std::string programs() {
  for (int version = 20; version >= 12; --version) {
    const std::string folder = "/usr/lib/postgresql/" + std::to_string(version) + "/bin";
    if (fs::exists(folder + "/initdb")) return folder;
  }
  return {};
}

}  // namespace

postgres_server& postgres_server::get() {
  static postgres_server one;
  return one;
}

postgres_server::postgres_server() {
  const std::string bin = programs();
  if (bin.empty()) {
    why_not_ = "needs PostgreSQL";
    return;
  }
  std::string name = (fs::temp_directory_path() / "troupe-pg-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  folder_ = name;
  run_after_end("for each in '" + folder_ +
                "'/*/postmaster.pid; do kill -QUIT $(head -1 \"$each\"); done 2> /dev/null; " +
                "sleep 0.2; rm -rf '" + folder_ + "'");
  // The server refuses to run for root.
  if (::geteuid() == 0) as_ = "setpriv --reuid=postgres --regid=postgres --clear-groups ";
  as_ = "cd " + folder_ + " && PATH=" + bin + ":$PATH " + as_;
  fs::permissions(folder_, fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec);
  const bool made =
      (::geteuid() != 0 || std::system(("chown postgres:postgres " + folder_).c_str()) == 0) &&
      run("initdb -D data -U tester -A trust -N -E UTF8 --locale=C") &&
      run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 "
          "-subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 "
          "-keyout data/server.key -out data/server.crt");
  if (!made) {
    why_not_ = "needs PostgreSQL: initdb failed: see " + folder_ + "/log";
    return;
  }
  start_server();
}

bool postgres_server::run(const std::string& command) const {
  return std::system((as_ + command + " >> log 2>&1").c_str()) == 0;
}

void postgres_server::start_server() {
  for (int tries = 0; tries < 100; ++tries) {
    if (port_ == 0) port_ = free_port();
    if (run("pg_ctl -D data -l data/server.log -w start -o '-k " + folder_ + " -p " +
            std::to_string(port_) +
            " -c listen_addresses=127.0.0.1 -c ssl=on -c fsync=off -c max_connections=50 "
            "-c shared_buffers=16MB -c max_prepared_transactions=0 -c logging_collector=off'"))
      return;
    // sleeps: processes of the server that was killed have not ended yet, or the port was taken
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  why_not_ = "needs PostgreSQL: the server does not start: see " + folder_ + "/log";
}

int postgres_server::server_id() const {
  int id = 0;
  std::ifstream(folder_ + "/data/postmaster.pid") >> id;
  return id;
}

void postgres_server::kill_server() {
  const int id = server_id();
  if (id > 1) ::kill(id, SIGKILL);
}
void postgres_server::stop_server() { run("pg_ctl -D data -m fast -w stop"); }

void postgres_server::crash_server() { run("pg_ctl -D data -m immediate -w stop"); }

namespace {
// Of the socket in the folder of the servers.
constexpr const char* standby_port = "5999";
}  // namespace

void postgres_server::start_standby() {
  run("rm -rf standby");
  const bool made =
      run("pg_basebackup -h " + folder_ + " -p " + std::to_string(port_) +
          " -U tester -D standby -R -X stream -c fast") &&
      run("pg_ctl -D standby -l standby/server.log -w start -o '-k " + folder_ + " -p " +
          standby_port + " -c listen_addresses= -c fsync=off -c shared_buffers=16MB'");
  if (!made) std::abort();
  sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
  sql("SELECT pg_reload_conf()");
  while (sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") != "1")
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // sleeps: until it has caught up
}
void postgres_server::fail_over() {
  crash_server();
  run("pg_ctl -D standby -w promote");
}
void postgres_server::stop_standby() {
  sql("ALTER SYSTEM RESET synchronous_standby_names");
  sql("SELECT pg_reload_conf()");
  run("pg_ctl -D standby -m immediate -w stop");
}
void postgres_server::end_standby() {
  run("pg_ctl -D standby -m immediate -w stop");
  start_server();
  sql("ALTER SYSTEM RESET synchronous_standby_names");
  sql("SELECT pg_reload_conf()");
}
std::string postgres_server::target_of_both(const std::string& more) const {
  return "host=" + folder_ + "," + folder_ + " port=" + std::to_string(port_) + "," + standby_port +
         " user=tester dbname=postgres " + more;
}

namespace {
// Of a socket in the same folder.
constexpr const char* pooler_port = "5998";
}  // namespace

bool postgres_server::start_pooler() {
  if (has_pooler_ || !fs::exists("/usr/sbin/pgbouncer")) return has_pooler_;
  const std::string pooler = folder_ + "/pooler";
  fs::create_directories(pooler);
  // Its number lies where that of a server does, by which it ends with the program.
  std::ofstream(pooler + "/pooler.ini")
      << "[databases]\npostgres = host=" << folder_ << " port=" << port_ << " user=tester\n"
      << "[pgbouncer]\nlisten_addr =\nlisten_port = " << pooler_port
      << "\nunix_socket_dir = " << folder_ << "\nauth_type = any\npool_mode = transaction\n"
      << "default_pool_size = 2\npidfile = " << pooler << "/postmaster.pid\nlogfile = " << pooler
      << "/log\n";
  fs::permissions(pooler, fs::perms::all);
  if (!run("/usr/sbin/pgbouncer -q -d " + pooler + "/pooler.ini")) std::abort();
  // sleeps: the command ends when the pooler has forked, and the pooler listens a moment later
  for (int tries = 0; !fs::exists(folder_ + "/.s.PGSQL." + pooler_port); ++tries) {
    if (tries == 1'000) std::abort();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  has_pooler_ = true;
  return true;
}
std::string postgres_server::pooler_target(const std::string& more) const {
  return "host=" + folder_ + " port=" + pooler_port + " user=tester dbname=postgres " + more;
}

std::string postgres_server::target(const std::string& more) const {
  return "host=" + folder_ + " port=" + std::to_string(port_) + " user=tester dbname=postgres " +
         more;
}
std::string postgres_server::tcp_target(const std::string& more) const {
  return "host=localhost port=" + std::to_string(port_) + " user=tester dbname=postgres " + more;
}

std::string postgres_server::sql(const std::string& text) const {
  const std::unique_ptr<PGconn, decltype(&PQfinish)> to(
      PQconnectdb(target("options=-cclient_min_messages=warning").c_str()), &PQfinish);
  const std::unique_ptr<PGresult, decltype(&PQclear)> got(PQexec(to.get(), text.c_str()), &PQclear);
  if (PQresultStatus(got.get()) == PGRES_FATAL_ERROR) return PQerrorMessage(to.get());
  return PQntuples(got.get()) > 0 ? PQgetvalue(got.get(), 0, 0) : "";
}

}  // namespace troupe::test
