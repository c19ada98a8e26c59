#include "nats/nats_server.hpp"

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

namespace troupe::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* program = "/usr/sbin/nats-server";

}  // namespace

bool nats_server::is_installed() { return fs::exists(program); }

nats_server::nats_server(std::string config, const files& with) {
  std::string name = (fs::temp_directory_path() / "troupe-nats-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  folder_ = name;
  run_after_end("kill -KILL $(cat '" + folder_ + "/pid' 2> /dev/null) 2> /dev/null; sleep 0.2; " +
                "rm -rf '" + folder_ + "'");
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
  return scheme + "://" + (user.empty() ? "" : user + "@") + "127.0.0.1:" + std::to_string(port());
}

void nats_server::start() {
  const bool started = process_.start([this](int port) {
    return std::vector<std::string>{program,
                                    "-a",
                                    "127.0.0.1",
                                    "-p",
                                    std::to_string(port),
                                    "-c",
                                    folder_ + "/config",
                                    "-P",
                                    folder_ + "/pid",
                                    "-l",
                                    folder_ + "/log"};
  });
  if (started) return;
  std::fprintf(stderr, "nats-server does not start:\n");
  static_cast<void>(std::system(("cat " + folder_ + "/log >&2").c_str()));
  std::abort();
}

}  // namespace troupe::test
