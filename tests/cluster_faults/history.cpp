#include "cluster_faults/history.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace troupe::test {

std::int64_t monotonic_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

history_file::history_file(const std::string& path)
    : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644)) {
  if (fd_ < 0) throw std::runtime_error("cannot write " + path);
}
history_file::~history_file() { ::close(fd_); }

std::uint64_t history_file::begin(std::string_view key, act what, std::int64_t first,
                                  std::int64_t second) {
  static constexpr std::array names{"read", "write", "swap"};
  std::uint64_t id = 0;
  {
    std::lock_guard held(mutex_);
    id = ++last_;
  }
  write_line("b " + std::to_string(id) + ' ' + std::string(key) + ' ' +
             names.at(static_cast<std::size_t>(what)) + ' ' + std::to_string(first) + ' ' +
             std::to_string(second) + ' ' + std::to_string(monotonic_ns()) + '\n');
  return id;
}

void history_file::end(std::uint64_t id, ending how, std::int64_t value, const std::string& words) {
  static constexpr std::array names{"done", "not_run", "unknown"};
  write_line("e " + std::to_string(id) + ' ' + names.at(static_cast<std::size_t>(how)) + ' ' +
             std::to_string(value) + ' ' + std::to_string(monotonic_ns()) + ' ' + words + '\n');
}

// In one call, so that lines of several threads do not mix.
void history_file::write_line(const std::string& line) const {
  if (::write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    throw std::runtime_error("cannot write the history");
}

}  // namespace troupe::test
