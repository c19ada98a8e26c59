// The numbers of a runtime and of its process, as tables.
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "observe/numbers/registry.hpp"
#include "runtime/observing/core_parts.hpp"
#include "runtime/observing/numbers/numbers_json.hpp"
#include "runtime/observing/numbers/sums.hpp"
#include "runtime/observing/observed_runtime.hpp"
#include "runtime/observing/summary.hpp"

namespace troupe::observing {
namespace {

using observe::gauge_of;
using observe::number_table;
using observe::number_unit;
using observe::row_sink;

using warning_counts = warning_list::kind_counts;
const number_table<warning_counts> warning_numbers{
    "troupe",
    {"runtime", "kind"},
    {observe::counter_of<&warning_counts::found>("warnings",
                                                 "Findings that are worth a warning, by kind."),
     observe::counter_of<&warning_counts::begun>("warnings_begun",
                                                 "How often a warning of the kind became active."),
     gauge_of<&warning_counts::active>(
         "warnings_active", "Warnings that were found within the last 10 seconds, by kind.")}};

constexpr double ns_per_s = 1e9;
double busy_seconds(const spent_time& spent) {
  return static_cast<double>(spent.cpu_ns) / ns_per_s;
}
double blocked_seconds(const spent_time& spent) {
  return static_cast<double>(spent.blocked_ns) / ns_per_s;
}
double worker_busy_seconds(const thread_times::thread_sum& spent) { return busy_seconds(spent); }
double worker_blocked_seconds(const thread_times::thread_sum& spent) {
  return blocked_seconds(spent);
}
double idle_seconds(const thread_times::thread_sum& spent) {
  return static_cast<double>(spent.idle_ns) / ns_per_s;
}
const number_table<spent_time> handler_spent{
    "troupe_handler",
    {"runtime", "class", "handler"},
    {observe::counter_of<&busy_seconds>("busy_seconds", "Processor time in the handler.",
                                        number_unit::seconds),
     observe::counter_of<&blocked_seconds>(
         "blocked_seconds", "Time in which the handler slept in a call of the system or at a lock.",
         number_unit::seconds)}};
const number_table<thread_times::thread_sum> worker_spent{
    "troupe_worker",
    {"runtime", "worker"},
    {observe::counter_of<&worker_busy_seconds>("busy_seconds", "Processor time of the worker.",
                                               number_unit::seconds),
     observe::counter_of<&worker_blocked_seconds>(
         "blocked_seconds", "Time in which the worker was blocked in a handler.",
         number_unit::seconds),
     observe::counter_of<&idle_seconds>("idle_seconds", "Time in which the worker had no work.",
                                        number_unit::seconds)}};

const number_table<warning_watch::class_mail> mail_numbers{
    "troupe_class",
    {"runtime", "class"},
    {gauge_of<&warning_watch::class_mail::messages>(
         "mailbox_messages", "Messages in the mailboxes of the class, at the last look."),
     gauge_of<&warning_watch::class_mail::longest>(
         "longest_mailbox_messages", "Messages in the longest mailbox of the class.")}};

struct timer_times_now {
  observe::distribution late;
};
const number_table<timer_times_now> timer_times{
    "troupe_timers",
    {"runtime"},
    {observe::histogram_of<&timer_times_now::late>("late_seconds",
                                                   "How long after its time a timer expired.")}};

struct blocking_numbers_now {
  std::size_t waiting = 0;
};
const number_table<blocking_numbers_now> blocking_numbers{
    "troupe_blocking",
    {"runtime"},
    {gauge_of<&blocking_numbers_now::waiting>("waiting_calls",
                                              "Blocking calls that wait for a thread.")}};

struct process_numbers_now {
  double cpu_seconds = 0, start_time_seconds = 0;
  std::uint64_t resident_bytes = 0, virtual_bytes = 0, open_fds = 0, max_fds = 0, threads = 0;
};
using process_now = process_numbers_now;
const number_table<process_now> process_numbers{
    "process",
    {},
    {observe::counter_of<&process_now::cpu_seconds>(
         "cpu_seconds", "Time that all threads have computed.", number_unit::seconds),
     gauge_of<&process_now::resident_bytes>("resident_memory_bytes", "Memory in use.",
                                            number_unit::bytes),
     gauge_of<&process_now::virtual_bytes>("virtual_memory_bytes", "Address space in use.",
                                           number_unit::bytes),
     gauge_of<&process_now::open_fds>("open_fds", "Open descriptors."),
     gauge_of<&process_now::max_fds>("max_fds", "The limit of descriptors."),
     gauge_of<&process_now::threads>("threads", "Threads of the system."),
     gauge_of<&process_now::start_time_seconds>(
         "start_time_seconds", "Start of the process, since 1970.", number_unit::seconds)}};

struct build_info {
  std::uint64_t is_there = 1;
};
const number_table<build_info> build_numbers{
    "troupe_build",
    {"version", "compiler"},
    {gauge_of<&build_info::is_there>("info", "1; the labels say how the library was built.")}};

std::uint64_t count_descriptors() {
  std::error_code failed;
  std::uint64_t count = 0;
  for (std::filesystem::directory_iterator at("/proc/self/fd", failed), end; !failed && at != end;
       at.increment(failed))
    ++count;
  return count == 0 ? 0 : count - 1;  // without the one that reads the folder
}

// The fields of /proc/self/stat behind the name, which may have spaces: the first one is number 3.
std::vector<std::string> stat_fields() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  std::istringstream rest(name_end == std::string::npos ? std::string()
                                                        : text.substr(name_end + 1));
  return {std::istream_iterator<std::string>(rest), {}};
}

double boot_time_seconds() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("btime ")) return std::strtod(line.c_str() + 6, nullptr);
  }
  return 0;
}

process_now look_at_process() {
  process_now seen;
  constexpr std::size_t first_field = 3, threads = 20, start = 22, virtual_bytes = 23,
                        resident = 24;
  const std::vector<std::string> fields = stat_fields();
  const auto field = [&](std::size_t number) {
    const std::size_t at = number - first_field;
    return at < fields.size() ? std::strtoull(fields[at].c_str(), nullptr, 10) : 0;
  };
  seen.threads = field(threads);
  seen.virtual_bytes = field(virtual_bytes);
  seen.resident_bytes = field(resident) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  static const double booted = boot_time_seconds();
  seen.start_time_seconds =
      booted + static_cast<double>(field(start)) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  ::timespec spent{};
  if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent) == 0)
    seen.cpu_seconds = static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) / 1e9;
  seen.open_fds = count_descriptors();
  ::rlimit most{};
  if (::getrlimit(RLIMIT_NOFILE, &most) == 0) seen.max_fds = most.rlim_cur;
  return seen;
}

void collect_workers(row_sink& rows, const std::string& runtime, const runtime_metrics& now,
                     const thread_times& times) {
  for (const auto& [worker, spent] : times.threads())
    rows.add(worker_spent, {runtime, worker == 0 ? "others" : std::to_string(worker)}, spent);
  for (std::size_t i = 0; i < now.workers.size(); ++i)
    rows.add(worker_numbers, {runtime, std::to_string(i + 1)}, now.workers[i]);
  rows.add(worker_numbers, {runtime, "others"}, now.others);
}

void collect_work(row_sink& rows, const std::string& runtime, runtime_core& core) {
  const double ns_per_tick = ns_per_tick_of(core);
  const tasks::source_counts timers = core.clock->count_by_source();
  for (std::size_t i = 0; i < timers.size(); ++i)
    rows.add(timer_numbers, {runtime, std::string(timer_source_names[i])}, timers[i]);
  constexpr double ns_per_ns = 1;
  rows.add(timer_times, {runtime}, {in_seconds(core.clock->count_lateness(), ns_per_ns)});
  for (const auto& [name, sum] : sum_up(reactor_of(core))) {
    rows.add(operation_numbers, {runtime, std::string(name)}, sum);
    rows.add(operation_times, {runtime, std::string(name)},
             time_of_one{in_seconds(sum.timed.took, ns_per_tick)});
  }
  for (const auto& [name, sum] : sum_up(core.jobs->counts())) {
    rows.add(lazy_numbers, {runtime, std::string(name)}, sum);
    rows.add(lazy_times, {runtime, std::string(name)},
             time_of_one{in_seconds(sum.timed.took, static_cast<double>(sum.ticks), ns_per_tick)});
  }
}

void collect_classes(row_sink& rows, const std::string& runtime, observed_runtime& observed) {
  runtime_core& core = observed.core;
  if (core.system->counts == nullptr) return;
  const double ns_per_tick = ns_per_tick_of(core);
  for (const auto& [name, sum] : sum_up(*core.system->counts, observed.times).classes) {
    rows.add(class_numbers, {runtime, std::string(name)}, sum);
    for (const auto& [handler, of_handler] : sum.handlers) {
      const std::vector<std::string> labels{runtime, std::string(name), std::string(handler)};
      rows.add(handler_numbers, labels, of_handler);
      rows.add(handler_spent, labels, of_handler.spent);
      times_of_handler times;
      times.took =
          in_seconds(of_handler.busy, static_cast<double>(of_handler.busy_ticks), ns_per_tick);
      times.waited = in_seconds(of_handler.waited, ns_per_tick);
      rows.add(handler_times, labels, times);
    }
  }
}

}  // namespace

void collect_numbers(row_sink& rows, const std::string& runtime, observed_runtime& observed,
                     bool components_only) {
  runtime_core& core = observed.core;
  core.components->collect(rows, runtime);
  if (components_only) return;
  const runtime_metrics now = core.metrics();
  rows.add(runtime_numbers, {runtime}, now);
  collect_workers(rows, runtime, now, observed.times);
  observed.watch.list().for_each_kind([&](std::string_view kind, const warning_counts& counts) {
    rows.add(warning_numbers, {runtime, std::string(kind)}, counts);
  });
  for (const auto& [name, all] : observed.watch.mail())
    rows.add(mail_numbers, {runtime, std::string(name)}, all);
  rows.add(blocking_numbers, {runtime}, {core.aside.waiting()});
  collect_work(rows, runtime, core);
  collect_classes(rows, runtime, observed);
}

void write_process(json_text& out) {
  constexpr std::size_t bytes_max = 256;
  char host[bytes_max] = {};
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  out.open('{').member("host", host);
  write_members(out, process_numbers, look_at_process());
  out.close('}');
}

void collect_process(observe::number_tables& tables, bool components_only) {
  observe::collect_instruments(tables);
  if (components_only) return;
  tables.add(log_numbers, {}, log::count());
  tables.add(process_numbers, {}, look_at_process());
  tables.add(build_numbers, {TROUPE_VERSION, __VERSION__}, {});
}

}  // namespace troupe::observing
