#include "stacks/profile.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <thread>

#include <utility>
#include <vector>

#include "program.hpp"
#include "stacks/flame_graph.hpp"
#include "stacks/thread_stack.hpp"
#include "stacks/unwinder.hpp"
#include "text/short_text.hpp"
#include "trust/visible.hpp"

namespace troupe_tool {
namespace {

using clock = std::chrono::steady_clock;

// The functions are looked up at the end: only then are there few stacks, and no look is late.
struct samples {
  using stack = std::pair<std::string, std::vector<std::uint64_t>>;  // the work, and its addresses
  std::map<stack, std::uint64_t> stacks;  // in nanoseconds of processor time
  std::map<std::string, std::uint64_t> works;
  std::uint64_t ns = 0;
  clock::duration time{0};
  std::string end;  // why it ended early; empty if it did not
};

// Adds the processor time since the last look at each thread to what the thread is in now. Looks
// alone would count a thread that waits for a processor as often as one that has it.
void add_look(const std::vector<thread_stack>& now, unwinder& files,
              std::map<int, std::int64_t>& cpu_ns, samples& taken) {
  for (const thread_stack& stack : now) {
    const auto [before, is_new] = cpu_ns.try_emplace(stack.thread, stack.cpu_ns);
    // neither is negative
    const std::int64_t ns = stack.cpu_ns - std::exchange(before->second, stack.cpu_ns);
    if (is_new || ns <= 0) continue;
    const auto spent = static_cast<std::uint64_t>(ns);
    taken.ns += spent;
    taken.works[stack.work()] += spent;
    taken.stacks[{stack.work(), files.addresses_of(stack)}] += spent;
  }
}

// At random distances, so that no rhythm of the program hides a function.
clock::duration next_pause(std::minstd_rand& random) {
  constexpr long mean_us = 10'101;  // 99 times a second
  return std::chrono::microseconds(
      std::uniform_int_distribution<long>(mean_us / 2, mean_us * 3 / 2)(random));
}

samples take_samples(program& asked, unwinder& files, std::chrono::milliseconds duration) {
  samples taken;
  std::minstd_rand random(std::random_device{}());
  std::map<int, std::int64_t> cpu_ns;  // by thread
  const std::size_t runtimes = count_runtimes(asked);
  const clock::time_point begin = clock::now(), end = begin + duration;
  try {
    for (clock::time_point next = begin; next < end;
         next = std::max(next + next_pause(random), clock::now())) {
      std::this_thread::sleep_until(next);  // sleeps: until the next look is due
      add_look(ask_stacks(asked, runtimes, "running"), files, cpu_ns, taken);
    }
  } catch (const failure& failed) {
    if (taken.ns == 0) throw;
    taken.end = failed.what();
  }
  taken.time = clock::now() - begin;
  return taken;
}

// From the handler inwards.
std::vector<std::string> names_of(const samples::stack& sampled, unwinder& files) {
  const std::vector<frame> frames = without_library(files.frames_of(sampled.second));
  std::vector<std::string> names{sampled.first};
  for (auto at = frames.rbegin(); at != frames.rend(); ++at) names.push_back(at->function);
  return names;
}

flame tree_of(const samples& taken, unwinder& files) {
  flame root;
  for (const auto& [stack, ns] : taken.stacks) {
    root.ns += ns;
    flame* at = &root;
    for (const std::string& name : names_of(stack, files)) {
      at = &at->above[name];
      at->ns += ns;
    }
  }
  return root;
}

void print_collapsed(const samples& taken, unwinder& files) {
  std::map<std::string, std::uint64_t> lines;
  for (const auto& [stack, ns] : taken.stacks) {
    std::string line;
    for (std::string name : names_of(stack, files)) {
      std::ranges::replace(name, ';', ',');
      line += (line.empty() ? "" : ";") + name;
    }
    lines[line] += ns;
  }
  constexpr std::uint64_t ns_per_us = 1'000;
  for (const auto& [line, ns] : lines) print_line(fmt::format("{} {}", line, ns / ns_per_us));
}

std::string head_of(const samples& taken) {
  constexpr double ns_per_s = 1e9;
  return fmt::format("{:.2f} s of processor time in {:.1f} s",
                     static_cast<double>(taken.ns) / ns_per_s,
                     std::chrono::duration<double>(taken.time).count());
}

void print_table(const samples& taken) {
  print_line(head_of(taken));
  if (taken.ns == 0) return;
  print_line("   time  share  handler");
  std::vector<std::pair<std::uint64_t, std::string>> rows;
  for (const auto& [work, ns] : taken.works) rows.emplace_back(ns, work);
  std::ranges::sort(rows, std::greater<>());
  for (const auto& [ns, work] : rows) {
    const double spent = static_cast<double>(ns);
    print_line(fmt::format("{:>7} {:5.1f}%  {}", short_time(spent),
                           100 * spent / static_cast<double>(taken.ns), work));
  }
}

[[noreturn]] void cannot_write(const std::string& path, int error) {
  throw failure(fmt::format("{} cannot be written: {}", path, std::strerror(error)));
}

// A file that did not exist before. It is removed unless its text was written.
class new_file {
 public:
  explicit new_file(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {
    if (fd_ >= 0) return;
    if (errno == EEXIST) throw failure(fmt::format("{} exists: name a new file with -o", path));
    cannot_write(path, errno);
  }
  new_file(const new_file&) = delete;
  new_file& operator=(const new_file&) = delete;
  ~new_file() {
    if (fd_ < 0) return;
    ::close(fd_);
    ::unlink(path_.c_str());
  }
  void write(std::string_view text) {
    while (!text.empty()) {
      const auto done = ::write(fd_, text.data(), text.size());
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) cannot_write(path_, errno);
      text.remove_prefix(static_cast<std::size_t>(done));
    }
    const int fd = std::exchange(fd_, -1);
    if (::close(fd) == 0) return;
    const int error = errno;
    ::unlink(path_.c_str());
    cannot_write(path_, error);
  }

 private:
  const std::string path_;
  int fd_;
};

}  // namespace

void show_profile(int pid, const profile_choices& chosen) {
  program asked(pid);
  unwinder files(pid);
  std::optional<new_file> file;
  if (!chosen.file.empty()) file.emplace(chosen.file);
  const samples taken = take_samples(asked, files, chosen.duration);
  if (file) {
    const std::string title = fmt::format("process {}: {}", pid, head_of(taken));
    file->write(flame_graph(tree_of(taken, files), title));
  }
  chosen.is_collapsed ? print_collapsed(taken, files) : print_table(taken);
  if (!taken.end.empty())
    put(fmt::format("troupe: {}; that is all until then\n", taken.end), stderr);
}

}  // namespace troupe_tool
