#include "trace_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "program.hpp"
#include "text/sort_stably.hpp"
#include "trust/visible.hpp"

namespace troupe_tool {
namespace {

[[noreturn]] void cannot_write(const std::string& path) {
  throw failure(fmt::format("{} cannot be written: {}", path, std::strerror(errno)));
}

// One row, or two for a stretch: its begin and its end.
struct row {
  double us;
  int thread;
  std::string text;
};

void add_rows(const json& event, std::vector<row>& to) {
  const std::string kind = event.value("ph", "");
  if (kind != "X" && kind != "i") return;
  std::string text = event.value("cat", "") + ": " + event.value("name", "");
  if (const auto with = event.find("args"); with != event.end() && with->is_object()) {
    for (const auto& [key, value] : with->items())
      text += fmt::format(" ({} {})", key, value.dump());
  }
  const double begin = event.value("ts", 0.0);
  const int thread = event.value("tid", 0);
  if (kind == "i") return to.push_back({begin, thread, std::move(text)});
  to.push_back({begin + event.value("dur", 0.0), thread, text + " ends"});
  to.push_back({begin, thread, std::move(text) + " begins"});
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
  if (path.empty()) throw failure("name the new file with -o, or ask for a table with --text");
  program asked(pid);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0 && errno == EEXIST)
    throw failure(fmt::format("{} exists: name a new file with -o", path));
  std::FILE* const to = file < 0 ? nullptr : ::fdopen(file, "w");
  if (to == nullptr) cannot_write(path);
  try {
    asked.trace(duration, to);
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

void print_trace(int pid, std::chrono::milliseconds duration) {
  program asked(pid);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> kept(std::tmpfile(), &std::fclose);
  if (kept == nullptr) cannot_write("a file for the trace");
  asked.trace(duration, kept.get());
  // a value takes many times its text
  constexpr long text_bytes_max = 256L << 20;
  if (std::ftell(kept.get()) > text_bytes_max)
    throw failure("the trace is too long for a table: record for a shorter time, or use -o");
  std::rewind(kept.get());
  constexpr int depth_max = 16;  // what walks through a value uses the stack
  const json whole = json::parse(kept.get(), [&](int depth, json::parse_event_t, json&) {
    if (depth > depth_max) throw failure("the trace is no sensible JSON");
    return true;
  });
  std::map<int, std::string> names;
  std::vector<row> rows;
  for (const json& event : whole.at("traceEvents")) {
    if (event.value("name", "") == "thread_name")
      names[event.value("tid", 0)] = shown(event.at("args").value("name", ""));
    add_rows(event, rows);
  }
  sort_stably(rows, std::less<>(), &row::us);
  print("Thread                Time (ms)  Event\n");
  for (const row& event : rows) {
    print("{:4} {:13} {:12.6f}  {}\n", event.thread, names[event.thread], event.us / 1000,
          shown(event.text));
  }
}

}  // namespace troupe_tool
