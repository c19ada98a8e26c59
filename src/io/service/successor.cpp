#include "troupe/io/service/successor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <span>
#include <string_view>
#include <utility>

#include "io/service/variables.hpp"
#include "troupe/base/error.hpp"
#include "troupe/io/error.hpp"
#include "troupe/io/pipe.hpp"
#include "troupe/io/service/notify.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::service {
namespace {

// This process's environment without the variables of its predecessor.
std::vector<std::string> own_environment() {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    const std::string_view name = text.substr(0, text.find('='));
    if (name == "LISTEN_FDS" || name == "LISTEN_PID" || name == "LISTEN_FDNAMES" ||
        name == "TROUPE_PREDECESSOR")
      continue;
    environment.emplace_back(text);
  }
  return environment;
}

// Waits until the program reports that it is ready, or ends.
task<> await_ready(process& next, pipe_stream& from, const std::string& program,
                   std::chrono::nanoseconds at_most) {
  std::array<char, 1> said{};
  const std::size_t bytes = co_await from.read(std::span<char>(said)).timeout(at_most);
  if (bytes != 0) co_return;
  // It has closed its end, most likely because it has ended.
  const exit_status ended = co_await next.wait().timeout(at_most);
  throw io_error("service::successor", program + " was not ready when it " + ended.to_string(),
                 ECHILD);
}

}  // namespace

successor& successor::operator=(successor&& other) noexcept {
  all_.swap(other.all_);
  return *this;
}

successor::~successor() {
  for (handed& handed : all_) {
    handed.file.remove();  // first, so that a client that finds the file finds a listener
    ::close(handed.fd);
  }
}

void successor::add(int fd, std::string name, io::socket_file file) {
  if (name.find_first_of(":=\n") != std::string::npos || name.find('\0') != std::string::npos)
    throw option_error("troupe: service::successor: the name \"" + name +
                       "\" of a socket has a character that is not allowed");
  all_.reserve(all_.size() + 1);
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, first_socket);
  if (copy < 0) throw io_error("fcntl", "descriptor " + std::to_string(fd), errno);
  all_.push_back({copy, std::move(name), std::move(file)});
}

void successor::hand(const tcp_listener& listener, std::string name) {
  add(listener.fd(), std::move(name), io::socket_file());
}

void successor::hand(unix_listener& listener, std::string name) {
  add(listener.fd(), std::move(name), std::move(listener.file_));
}

task<process> successor::start(std::string program, std::vector<std::string> arguments,
                               time_span at_most) {
  auto [own, there] = pipe_stream::make();
  process_options options;
  options.environment = own_environment();
  predecessor said{::getpid(), first_socket + static_cast<int>(all_.size()), {}};
  std::string names;
  for (handed& handed : all_) {
    options.descriptors.push_back(handed.fd);
    names += (&handed == all_.data() ? "" : ":") + handed.name;
    said.files += handed.file.is_kept() ? '1' : '0';
  }
  options.descriptors.push_back(there.fd());
  options.environment->push_back("LISTEN_FDS=" + std::to_string(all_.size()));
  options.environment->push_back("LISTEN_FDNAMES=" + names);
  options.environment->push_back("TROUPE_PREDECESSOR=" + said.to_string());
  reloading();
  process next;
  std::exception_ptr failed;
  try {
    next = process::start(program, arguments, options);
    there.close();
    task<> waiting = await_ready(next, own, program, at_most);
    co_await std::move(waiting);
  } catch (...) {
    failed = std::current_exception();
  }
  if (failed != nullptr) {
    if (next.id() != 0) static_cast<void>(next.kill(SIGTERM));
    notify("READY=1\n");  // this process serves on
    std::rethrow_exception(failed);
  }
  notify("READY=1\nMAINPID=" + std::to_string(next.id()) + "\n");
  for (handed& handed : all_) handed.file.release();
  co_return next;
}

}  // namespace troupe::service
