// measure: what a C++ benchmark program needs besides its work: arguments, clocks, and the line of
// the result. README.md says what the arguments and the line mean. C++17, because CAF needs it.
#pragma once

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <vector>

#include <sched.h>
#include <unistd.h>

namespace measure {

struct result {
  double value = 0;
  std::uint64_t check = 0;
  double fairness = 0;  // chameneos only; 0 elsewhere
  double p50 = 0;       // wake_latency only, microseconds; 0 elsewhere
  double p99 = 0;
  double times_ideal = 0;  // ramp_* only; 0 elsewhere
};

using benchmark = result (*)(unsigned workers, std::uint64_t size);

struct entry {
  std::string_view name;
  std::uint64_t default_size;
  benchmark run;
};

// ---- clocks ----

inline std::int64_t read_clock_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

inline std::int64_t now_ns() { return read_clock_ns(CLOCK_MONOTONIC); }

// CPU time of all threads of this process, in the kernel's nanoseconds. times(2) and getrusage(2)
// would suffice for a busy program, but an idle one uses less than their tick.
inline std::int64_t process_cpu_ns() { return read_clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

class stopwatch {
 public:
  double ns_per(std::uint64_t operations) const {
    return static_cast<double>(now_ns() - start_) / static_cast<double>(operations);
  }

 private:
  std::int64_t start_ = now_ns();
};

inline void sleep_ms(std::int64_t ms) {
  timespec t{static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000 * 1'000'000)};
  while (nanosleep(&t, &t) != 0) {
  }
}

// ---- the process ----

inline std::int64_t resident_bytes() {
  long total_pages = 0;
  long resident_pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &total_pages, &resident_pages) != 2)
    std::abort();
  std::fclose(file);
  return std::int64_t{resident_pages} * sysconf(_SC_PAGESIZE);
}

// Lets the calling thread run only on `cpu`, also when the process was started with another mask.
inline void pin_this_thread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    std::perror("sched_setaffinity");
    std::exit(1);
  }
}

inline result latency_result(std::vector<std::int64_t> latencies_ns) {
  if (latencies_ns.empty()) return {};
  std::sort(latencies_ns.begin(), latencies_ns.end());
  const std::size_t n = latencies_ns.size();
  result r;
  r.p50 = static_cast<double>(latencies_ns[n / 2]) / 1e3;
  r.p99 = static_cast<double>(latencies_ns[n * 99 / 100]) / 1e3;
  r.value = r.p50;
  r.check = n;
  return r;
}

// The result of chameneos from the creatures' own counts. Two creatures count each meeting.
inline result meetings_result(double ns_per_meeting, const std::vector<std::uint64_t>& met) {
  result r;
  r.value = ns_per_meeting;
  for (const std::uint64_t count : met) r.check += count;
  r.check /= 2;
  const auto [least, most] = std::minmax_element(met.begin(), met.end());
  r.fairness = static_cast<double>(*most) / static_cast<double>(std::max<std::uint64_t>(*least, 1));
  return r;
}

// ---- main ----

inline std::uint64_t parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number == 0) {
    std::fprintf(stderr, "not a positive whole number: %s\n", text.data());
    std::exit(2);
  }
  return number;
}

inline void print(const result& r) {
  std::printf("value=%.4f check=%" PRIu64, r.value, r.check);
  if (r.fairness > 0) std::printf(" fairness=%.3f", r.fairness);
  if (r.times_ideal > 0) std::printf(" times_ideal=%.3f", r.times_ideal);
  if (r.p50 > 0) std::printf(" p50=%.3f p99=%.3f", r.p50, r.p99);
  std::printf("\n");
  std::fflush(stdout);
}

// The whole of main(): finds the benchmark, runs it, and prints its line. The process then ends
// without destroying anything: the bench does not time that, and destroying a million actors takes
// long.
template <std::size_t Count>
[[noreturn]] void run_program(int argc, char** argv, const entry (&table)[Count]) {
  if (argc == 3 || argc == 4) {
    for (const entry& e : table) {
      if (e.name != argv[1]) continue;
      const auto workers = static_cast<unsigned>(parse_number(argv[2]));
      print(e.run(workers, argc == 4 ? parse_number(argv[3]) : e.default_size));
      _exit(0);
    }
  }
  std::fprintf(stderr, "usage: %s BENCH WORKERS [SIZE]\nbenches:", argv[0]);
  for (const entry& e : table)
    std::fprintf(stderr, " %.*s", static_cast<int>(e.name.size()), e.name.data());
  std::fprintf(stderr, "\n");
  std::exit(2);
}

}  // namespace measure
