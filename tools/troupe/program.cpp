#include "program.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

namespace troupe_tool {
namespace {

std::filesystem::path folder() {
  const char* const own = std::getenv("XDG_RUNTIME_DIR");
  if (own != nullptr && *own != '\0') return std::filesystem::path(own) / "troupe";
  return "/tmp/troupe-" + std::to_string(::getuid());
}

constexpr std::chrono::seconds patience{30};  // a program that does not answer is given up

void set_patience(int stream, std::chrono::seconds limit) {
  const ::timeval time{limit.count(), 0};
  ::setsockopt(stream, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

// Returns a descriptor; -1 if nothing listens there.
int connect_to(const std::filesystem::path& path) {
  ::sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string name = path.string();
  if (name.size() >= sizeof address.sun_path) return -1;
  std::copy(name.begin(), name.end(), address.sun_path);
  const int stream = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (stream < 0) return -1;
  set_patience(stream, patience);
  const auto* const at = static_cast<const ::sockaddr*>(static_cast<const void*>(&address));
  if (::connect(stream, at, sizeof address) == 0) return stream;
  ::close(stream);
  return -1;
}

}  // namespace

std::string socket_of(int pid) { return folder() / (std::to_string(pid) + ".sock"); }

program::program(int pid) : pid_(pid), stream_(connect_to(socket_of(pid))) {
  if (stream_ >= 0) return;
  throw failure("process " + std::to_string(pid) + " cannot be asked at " + socket_of(pid) +
                ": start the program with TROUPE_OBSERVE=1, as the same user and with the same "
                "XDG_RUNTIME_DIR");
}

program::~program() { ::close(stream_); }

void program::connect_again_if_cut_off() {
  char next = 0;
  if (::recv(stream_, &next, 1, MSG_PEEK | MSG_DONTWAIT) != 0) return;
  const int again = connect_to(socket_of(pid_));
  if (again < 0) return;  // it has ended
  ::close(stream_);
  stream_ = again;
  heard_.clear();
}

void program::send(const std::string& question) {
  connect_again_if_cut_off();
  const std::string line = question + "\n";
  if (::send(stream_, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    throw failure("process " + std::to_string(pid_) + " has ended");
}

void program::hear() {
  std::array<char, 65536> bytes;
  const auto got = ::recv(stream_, bytes.data(), bytes.size(), 0);
  if (got <= 0) throw failure("process " + std::to_string(pid_) + " has ended, or does not answer");
  heard_.append(bytes.data(), static_cast<std::size_t>(got));
}

std::string program::ask_text(const std::string& question) {
  send(question);
  std::size_t end = 0;
  while ((end = heard_.find('\n')) == std::string::npos) hear();
  std::string answer = heard_.substr(0, end);
  heard_.erase(0, end + 1);
  return answer;
}

json program::ask(const std::string& question) {
  json answer = json::parse(ask_text(question));
  if (answer.contains("error")) throw failure(answer["error"].get<std::string>());
  return answer;
}

void program::trace(std::chrono::milliseconds duration, std::FILE* to) {
  set_patience(stream_, std::chrono::ceil<std::chrono::seconds>(duration) + patience);
  send("trace " + std::to_string(duration.count()));
  constexpr std::string_view refused = "{\"error\"";
  while (heard_.size() < refused.size()) hear();
  bool is_first = true, is_whole = false;
  while (!is_whole) {
    if (std::exchange(is_first, false) && heard_.starts_with(refused)) {
      while (!heard_.ends_with('\n')) hear();
      throw failure(json::parse(heard_)["error"].get<std::string>());
    }
    is_whole = heard_.ends_with('\n');
    if (std::fwrite(heard_.data(), 1, heard_.size(), to) != heard_.size())
      throw failure(std::string("the trace cannot be written: ") + std::strerror(errno));
    heard_.clear();
    if (!is_whole) hear();
  }
}

std::vector<int> programs() {
  std::vector<int> found;
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(folder(), none)) {
    const std::string name = file.path().stem().string();
    int pid = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (file.path().extension() != ".sock" || bad != std::errc{} ||
        end != name.data() + name.size())
      continue;
    const int stream = connect_to(file.path());  // a program that was killed leaves its socket
    if (stream < 0) continue;
    ::close(stream);
    found.push_back(pid);
  }
  std::sort(found.begin(), found.end());
  return found;
}

void end_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw failure(std::string("the output cannot be written: ") + std::strerror(errno));
}

}  // namespace troupe_tool
