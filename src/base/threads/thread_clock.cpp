#include "base/threads/thread_clock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <string_view>

namespace troupe::base {

namespace {

// -1 if there is no such clock.
std::int64_t read_clock(clockid_t clock) noexcept {
  constexpr std::int64_t ns_per_s = 1'000'000'000;
  timespec spent{};
  if (::clock_gettime(clock, &spent) != 0) return -1;
  return std::int64_t{spent.tv_sec} * ns_per_s + spent.tv_nsec;
}

}  // namespace

std::int64_t own_cpu_ns() noexcept { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

std::int64_t cpu_ns_of(int thread) noexcept {
  // The number of a thread's clock, as pthread_getcpuclockid() makes it. That function takes a
  // pthread_t, which must not be used once the thread has ended; the system refuses a stale number.
  constexpr unsigned of_one_thread = 4, scheduled_time = 2;
  const auto clock =
      static_cast<clockid_t>(~static_cast<unsigned>(thread) << 3 | of_one_thread | scheduled_time);
  return thread <= 0 ? -1 : read_clock(clock);
}

bool is_blocked(int thread) noexcept {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[256];
  const auto size = ::read(file, text, sizeof text);
  ::close(file);
  const std::string_view line(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::size_t name_end = line.rfind(')');  // the state follows the thread's name
  return name_end != std::string_view::npos && name_end + 2 < line.size() &&
         line[name_end + 2] != 'R';
}

}  // namespace troupe::base
