// sums: the counts of all threads of a runtime together, and the declarations of their numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "actor/counting/message_counts.hpp"
#include "io/reactor/reactor.hpp"
#include "jobs/pool/job_pool.hpp"
#include "observe/counting/histogram.hpp"
#include "observe/numbers/number.hpp"
#include "runtime/observing/times/thread_times.hpp"
#include "task/timers/timers.hpp"
#include "troupe/log/log.hpp"
#include "troupe/runtime/metrics.hpp"

namespace troupe::observing {

// A handler that is called by tell and by ask has two functions, but one name.
struct handler_sum {
  std::uint64_t messages = 0, resumed = 0, failures = 0;
  std::uint64_t busy_ticks = 0, busy_samples = 0, wait_samples = 0;
  observe::value_counts busy, waited;
  spent_time spent;
};
struct class_sum {
  std::uint64_t spawned = 0, ended = 0, suspended = 0, resumed = 0;
  std::map<std::string_view, handler_sum> handlers;

  void add(const actor::class_count& counted) noexcept;  // without handlers
  // The counts of threads are not of one moment: never less than 0.
  std::uint64_t alive() const noexcept;
  std::uint64_t suspended_now() const noexcept;
};
using edge_key = std::pair<std::pair<std::string_view, std::string_view>, std::string_view>;
struct all_sums {
  std::map<std::string_view, class_sum> classes;
  std::map<edge_key, std::uint64_t> edges;
};
// All of these throw std::bad_alloc.
all_sums sum_up(const actor::message_counts& counts, const thread_times& times);
std::string_view name_of(actor::message::handler method);

// Samples of one kind of work, in ticks.
struct timed_sum {
  std::uint64_t samples = 0;
  observe::value_counts took;
};
struct operation_sum {
  std::uint64_t operations = 0, bytes = 0, errors = 0, cancelled = 0;
  timed_sum timed;
};
// `reactor` may be null.
std::map<std::string_view, operation_sum> sum_up(const io::reactor* reactor);
struct lazy_sum {
  std::uint64_t computed = 0, stolen = 0, ticks = 0;
  timed_sum timed;
};
std::map<std::string_view, lazy_sum> sum_up(const jobs::lazy_counts* counts);

// The values of a histogram in ticks as one in seconds; `sum` is the sum of all ticks.
observe::distribution in_seconds(const observe::value_counts& ticks, double ticks_in_all,
                                 double ns_per_tick);
// The same without a counted sum: it uses the middles of the buckets.
observe::distribution in_seconds(const observe::value_counts& ticks, double ns_per_tick);

// Times of samples are numbers of their own: they are scaled.
struct times_of_handler {
  observe::distribution took, waited;
};
struct time_of_one {
  observe::distribution took;
};

extern const observe::number_table<log::counts> log_numbers;
extern const observe::number_table<runtime_metrics> runtime_numbers;
extern const observe::number_table<worker_metrics> worker_numbers;
extern const observe::number_table<tasks::source_count> timer_numbers;
extern const observe::number_table<operation_sum> operation_numbers;
extern const observe::number_table<time_of_one> operation_times;
extern const observe::number_table<lazy_sum> lazy_numbers;
extern const observe::number_table<time_of_one> lazy_times;
extern const observe::number_table<class_sum> class_numbers;
extern const observe::number_table<handler_sum> handler_numbers;
extern const observe::number_table<times_of_handler> handler_times;

}  // namespace troupe::observing
