#include "trace_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "program.hpp"

namespace troupe_tool {
namespace {

[[noreturn]] void cannot_write(const std::string& path) {
  throw failure(fmt::format("{} cannot be written: {}", path, std::strerror(errno)));
}

}  // namespace

std::chrono::milliseconds duration_of(const std::string& text) {
  constexpr double second_ms = 1000, minute_ms = 60'000, max_ms = 10 * minute_ms;
  double number = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit(end, text.data() + text.size());
  const double unit_ms = unit == "ms"                  ? 1
                         : unit == "s" || unit.empty() ? second_ms
                         : unit == "m"                 ? minute_ms
                                                       : 0;
  const double ms = number * unit_ms;
  if (bad != std::errc{} || !(ms >= 1 && ms <= max_ms))
    throw failure(fmt::format("`{}` is no duration: write 5s, 500ms or 2m, at most 10m", text));
  return std::chrono::milliseconds(static_cast<long>(ms));
}

void write_trace(int pid, std::chrono::milliseconds duration, const std::string& path) {
  program of(pid);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0 && errno == EEXIST)
    throw failure(fmt::format("{} exists: name a new file with -o", path));
  std::FILE* const to = file < 0 ? nullptr : ::fdopen(file, "w");
  if (to == nullptr) cannot_write(path);
  try {
    of.trace(duration, to);
  } catch (...) {
    std::fclose(to);
    ::unlink(path.c_str());
    throw;
  }
  if (std::fclose(to) == 0) return;
  const int why = errno;
  ::unlink(path.c_str());
  errno = why;
  cannot_write(path);
}

}  // namespace troupe_tool
