#include "processes/process.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <fstream>
#include <sstream>

namespace troupe_tool {

std::string name_of_user(::uid_t user) {
  const ::passwd* const entry = ::getpwuid(user);
  return entry == nullptr ? std::to_string(user) : entry->pw_name;
}

// proc(5): the time at which the process began is field 22 of its `stat`, in clock ticks since the
// boot. The name of the program, field 2, is in parentheses and may have any character.
double uptime_ns_of(int pid) {
  constexpr double ns_per_second = 1e9;
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text, '\0');
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int number = 3; number < 22; ++number) fields >> field;
  double began_ticks = 0;
  ::timespec now = {};
  if (!(fields >> began_ticks) || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const double began = began_ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)) * ns_per_second;
  const double since_boot =
      static_cast<double>(now.tv_sec) * ns_per_second + static_cast<double>(now.tv_nsec);
  return std::max(since_boot - began, 0.0);
}

std::string arguments_of(int pid) {
  constexpr std::size_t bytes_max = 4096;
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
  std::string text(bytes_max, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  while (text.ends_with('\0')) text.pop_back();
  std::ranges::replace(text, '\0', ' ');
  return text;
}

}  // namespace troupe_tool
