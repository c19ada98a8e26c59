#include "program.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "observe/sockets/observation_socket.hpp"

namespace troupe_tool {
namespace {

void set_patience(int stream, std::chrono::milliseconds limit) {
  constexpr long ms_per_s = 1000, us_per_ms = 1000;
  const long ms = std::max<long>(limit.count(), 1);
  const ::timeval time{ms / ms_per_s, ms % ms_per_s * us_per_ms};
  ::setsockopt(stream, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  ::setsockopt(stream, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

// Returns a descriptor; -1 if no process of that user listens there.
int connect_to(const program_place& where, std::chrono::seconds patience) {
  ::sockaddr_un address;
  if (troupe::observe::make_address(where.socket, address)) return -1;
  const int stream = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (stream < 0) return -1;
  set_patience(stream, patience);
  const auto* const at = static_cast<const ::sockaddr*>(static_cast<const void*>(&address));
  if (::connect(stream, at, sizeof address) == 0 &&
      troupe::observe::is_other_end_of(stream, where.user, false))
    return stream;
  ::close(stream);
  return -1;
}

}  // namespace

program::program(int pid, std::chrono::seconds patience) : program(place_of(pid), patience) {}

program::program(program_place where, std::chrono::seconds patience)
    : where_(std::move(where)), patience_(patience), stream_(connect_to(where_, patience)) {
  if (stream_ >= 0) return;
  throw failure("process " + std::to_string(where_.pid) + " cannot be asked at " + where_.socket +
                ": no process of its user answers there");
}

program::~program() { ::close(stream_); }

void program::connect_again_if_cut_off() {
  char next = 0;
  if (::recv(stream_, &next, 1, MSG_PEEK | MSG_DONTWAIT) != 0) return;
  const int again = connect_to(where_, patience_);
  if (again < 0) return;  // it has ended
  ::close(stream_);
  stream_ = again;
  heard_.clear();
}

void program::send(const std::string& question) {
  connect_again_if_cut_off();
  const std::string line = question + "\n";
  if (::send(stream_, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    throw failure("process " + std::to_string(where_.pid) + " has ended");
}

// The answer to this question may come later, and must not be taken for that to the next one.
void program::give_up() {
  ::shutdown(stream_, SHUT_RDWR);
  heard_.clear();
}

void program::hear(clock::time_point end) {
  std::array<char, 65536> bytes;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - clock::now());
  ssize_t got = -1;
  if (left.count() > 0) {
    set_patience(stream_, left);
    got = ::recv(stream_, bytes.data(), bytes.size(), 0);
  }
  if (got <= 0) {
    give_up();
    throw failure("process " + std::to_string(where_.pid) +
                  (got == 0 ? " has ended" : " has ended, or does not answer in time"));
  }
  heard_.append(bytes.data(), static_cast<std::size_t>(got));
}

std::string program::ask_text(const std::string& question) {
  send(question);
  const clock::time_point end_of_patience = clock::now() + patience_;
  std::size_t end = std::string::npos, searched = 0;
  while ((end = heard_.find('\n', searched)) == std::string::npos) {
    searched = heard_.size();
    if (searched > answer_bytes_max) {
      give_up();
      throw failure("process " + std::to_string(where_.pid) + " answers more than " +
                    std::to_string(answer_bytes_max >> 20) + " MiB, which is too much to show");
    }
    hear(end_of_patience);
  }
  std::string answer = heard_.substr(0, end);
  heard_.erase(0, end + 1);
  return answer;
}

json program::ask(const std::string& question) {
  // Functions of the library that walk through a value use the stack.
  constexpr int depth_max = 100;
  const auto check_depth = [this](int depth, json::parse_event_t, json&) {
    if (depth > depth_max)
      throw failure("the answer of process " + std::to_string(where_.pid) + " is no sensible JSON");
    return true;
  };
  json answer = json::parse(ask_text(question), check_depth);
  if (answer.contains("error")) throw failure(answer.at("error").get<std::string>());
  return answer;
}

// Beyond its duration and the patience, a trace takes a second a MiB at most.
void program::trace(std::chrono::milliseconds duration, std::FILE* to) {
  send("trace " + std::to_string(duration.count()));
  clock::time_point end = clock::now() + duration + patience_;
  constexpr std::string_view refused = "{\"error\"";
  while (heard_.size() < refused.size()) hear(end);
  bool is_first = true, is_whole = false;
  std::size_t bytes = 0;
  while (!is_whole) {
    if (std::exchange(is_first, false) && heard_.starts_with(refused)) {
      while (!heard_.ends_with('\n') && heard_.size() < answer_bytes_max) hear(end);
      throw failure(json::parse(heard_).at("error").get<std::string>());
    }
    is_whole = heard_.ends_with('\n');
    bytes += heard_.size();
    end += std::chrono::microseconds(heard_.size());
    if (bytes > trace_bytes_max)
      throw failure("the trace has more than " + std::to_string(trace_bytes_max >> 30) +
                    " GiB: record for a shorter time");
    if (std::fwrite(heard_.data(), 1, heard_.size(), to) != heard_.size())
      throw failure(std::string("the trace cannot be written: ") + std::strerror(errno));
    heard_.clear();
    if (!is_whole) hear(end);
  }
}

}  // namespace troupe_tool
