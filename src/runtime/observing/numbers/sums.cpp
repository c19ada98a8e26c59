#include "runtime/observing/numbers/sums.hpp"

#include <algorithm>
#include <array>

#include "troupe/actor/cell.hpp"

namespace troupe::observing {
namespace {

using observe::counter_of;
using observe::gauge_of;
using observe::histogram_of;
using observe::in_summary;
using observe::number_unit;

// Other threads may lower a count before this one reads the count that they raised.
std::uint64_t difference(std::uint64_t more, std::uint64_t less) {
  return more > less ? more - less : 0;
}

// A time is known within 25 %.
constexpr std::array seconds_bounds{1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 5e-3, 2e-2, 0.1, 0.5, 2.0, 10.0};

double up_seconds(const runtime_metrics& now) { return static_cast<double>(now.up_ns) / 1e9; }
std::uint64_t alive_of(const class_sum& sum) { return sum.alive(); }
std::uint64_t suspended_of(const class_sum& sum) { return sum.suspended_now(); }

}  // namespace

void class_sum::add(const actor::class_count& counted) noexcept {
  spawned += counted.spawned.get();
  ended += counted.ended.get();
  suspended += counted.suspended.get();
  resumed += counted.resumed.get();
}
std::uint64_t class_sum::alive() const noexcept { return difference(spawned, ended); }
std::uint64_t class_sum::suspended_now() const noexcept { return difference(suspended, resumed); }

std::string_view name_of(actor::message::handler method) {
  return method(nullptr, nullptr, actor::message_act::describe);
}

all_sums sum_up(const actor::message_counts& counts, const thread_times& times) {
  all_sums all;
  counts.for_each_thread([&](const actor::thread_counts& of_thread) {
    of_thread.for_each_class(
        [&](const actor::class_count& counted) { all.classes[counted.type->name].add(counted); });
    of_thread.for_each_handler([&](const actor::handler_count& counted) {
      handler_sum& sum = all.classes[counted.type->name].handlers[name_of(counted.method)];
      sum.messages += counted.messages.get();
      sum.resumed += counted.resumed.get();
      sum.failures += counted.failures.get();
      sum.busy_ticks += counted.busy_ticks.get();
      sum.busy_samples += counted.busy_samples.get();
      sum.wait_samples += counted.wait_samples.get();
      counted.busy.add_to(sum.busy);
      counted.waited.add_to(sum.waited);
    });
    of_thread.for_each_edge([&](const actor::edge_count& counted) {
      const std::string_view from = counted.sender == nullptr ? "outside" : counted.sender->name;
      all.edges[{{from, counted.receiver->name}, name_of(counted.method)}] +=
          counted.messages.get();
    });
  });
  for (const auto& [name, spent] : times.parts()) {
    const auto found = all.classes.find(name.of_class);
    if (found == all.classes.end()) continue;  // other work
    found->second.handlers[name.handler].spent += spent;
  }
  return all;
}

std::map<std::string_view, operation_sum> sum_up(const io::reactor* reactor) {
  std::map<std::string_view, operation_sum> kinds;
  if (reactor == nullptr || reactor->counted == nullptr) return kinds;
  reactor->counted->for_each_thread([&](const io::thread_operations& of_thread) {
    of_thread.for_each_kind([&](io::action action, const io::operation_count& counted) {
      operation_sum& all = kinds[io::name_of(action)];
      all.operations += counted.done.get();
      all.bytes += counted.bytes.get();
      all.errors += counted.errors.get();
      all.cancelled += counted.cancelled.get();
      all.timed.samples += counted.samples.get();
      counted.took.add_to(all.timed.took);
    });
  });
  return kinds;
}

std::map<std::string_view, lazy_sum> sum_up(const jobs::lazy_counts* counts) {
  std::map<std::string_view, lazy_sum> classes;
  if (counts == nullptr) return classes;
  counts->for_each_thread([&](const jobs::thread_lazies& of_thread) {
    of_thread.for_each_class([&](const jobs::lazy_count& counted) {
      lazy_sum& all = classes[counted.name];
      all.computed += counted.computed.get();
      all.stolen += counted.stolen.get();
      all.ticks += counted.busy_ticks.get();
      all.timed.samples += counted.samples.get();
      counted.took.add_to(all.timed.took);
    });
  });
  return classes;
}

observe::distribution in_seconds(const observe::value_counts& ticks, double ticks_in_all,
                                 double ns_per_tick) {
  const double seconds_per_tick = ns_per_tick / 1e9;
  observe::distribution seconds =
      ticks.spread_over(seconds_bounds, [&](double tick) { return tick * seconds_per_tick; });
  seconds.sum = ticks_in_all * seconds_per_tick;
  return seconds;
}

observe::distribution in_seconds(const observe::value_counts& ticks, double ns_per_tick) {
  return in_seconds(ticks, ticks.sum(), ns_per_tick);
}

const observe::number_table<log::counts> log_numbers{
    "troupe_log",
    {},
    {counter_of<&log::counts::lines>("lines", "Lines that were logged."),
     counter_of<&log::counts::dropped>(
         "dropped",
         "Lines of the log that were dropped, because they came faster than they were written.")}};

const observe::number_table<runtime_metrics> runtime_numbers{
    "troupe",
    {"runtime"},
    {gauge_of<&up_seconds>("up_seconds", "Time since the runtime was made.", number_unit::seconds),
     gauge_of<&runtime_metrics::actors>("actors", "Actors and tasks that have not ended."),
     in_summary("suspended", gauge_of<&runtime_metrics::suspended>("suspended_turns",
                                                                   "Turns and tasks that wait.")),
     counter_of<&runtime_metrics::dead_letters>("dead_letters", "Messages that no actor handled."),
     counter_of<&runtime_metrics::failures>("failures", "Exceptions that left handlers and tasks."),
     counter_of<&runtime_metrics::failures_dropped>("failures_dropped",
                                                    "Failures that were not kept."),
     gauge_of<&runtime_metrics::failures_kept>(
         "failures_kept", "Failures that neither run() nor take_errors() has given."),
     gauge_of<&runtime_metrics::failure_bytes>("failure_bytes", "Bytes of the failures kept.",
                                               number_unit::bytes),
     counter_of<&runtime_metrics::errors_dropped>(
         "errors_dropped", "Exceptions of results for which no code waited any longer."),
     counter_of<&runtime_metrics::lazies_dropped>(
         "lazies_dropped", "Lazies that were dropped before a thread wanted them."),
     gauge_of<&runtime_metrics::lazies_queued>("lazies_queued", "Lazies that wait for a thread."),
     gauge_of<&runtime_metrics::resource_bytes>("resource_bytes", "Bytes that resources occupy.",
                                                number_unit::bytes),
     in_summary("resource_bytes_peak",
                gauge_of<&runtime_metrics::resource_bytes_peak>(
                    "resource_peak_bytes", "The most bytes that resources occupied at a time.",
                    number_unit::bytes)),
     counter_of<&runtime_metrics::io_waits>("io_waits", "I/O operations that had to wait."),
     gauge_of<&runtime_metrics::io_in_flight>("io_in_flight", "I/O operations that are under way."),
     in_summary("io_open",
                gauge_of<&runtime_metrics::io_open>(
                    "io_descriptors", "Descriptors with at least one operation so far.")),
     gauge_of<&runtime_metrics::timers_armed>("timers_armed", "Timers that are armed."),
     gauge_of<&runtime_metrics::blocking_calls>("blocking_calls",
                                                "Blocking calls that run or wait for a thread.")}};

const observe::number_table<worker_metrics> worker_numbers{
    "troupe_worker",
    {"runtime", "worker"},
    {counter_of<&worker_metrics::turns>("turns", "Turns that the worker has run."),
     counter_of<&worker_metrics::messages>(
         "messages", "Messages that the worker has handled, and coroutines that it has resumed."),
     counter_of<&worker_metrics::spawned>("spawned", "Actors and tasks that the worker started."),
     counter_of<&worker_metrics::ended>("ended", "Actors and tasks that ended on the worker."),
     counter_of<&worker_metrics::lazies>("lazies", "Lazies that the worker has run."),
     counter_of<&worker_metrics::steals>("steals",
                                         "How often the worker took work from another one."),
     counter_of<&worker_metrics::stolen>("stolen",
                                         "Actors and procedures that these steals moved."),
     counter_of<&worker_metrics::parks>("parks", "How often the worker parked."),
     counter_of<&worker_metrics::woken>("woken", "How often the worker was woken."),
     gauge_of<&worker_metrics::queued>("queued", "Runnables in the worker's queue.")}};

using tasks::source_count;
const observe::number_table<source_count> timer_numbers{
    "troupe_timers",
    {"runtime", "source"},
    {counter_of<&source_count::armed>("armed", "Timers that were armed, by source."),
     counter_of<&source_count::expired>("expired", "Timers that expired."),
     counter_of<&source_count::cancelled>("cancelled",
                                          "Timers that were cancelled before they expired.")}};

const observe::number_table<operation_sum> operation_numbers{
    "troupe_io",
    {"runtime", "operation"},
    {in_summary("done", counter_of<&operation_sum::operations>(
                            "operations", "I/O operations that ended, by kind.")),
     counter_of<&operation_sum::bytes>("bytes", "Bytes that they transferred.", number_unit::bytes),
     counter_of<&operation_sum::errors>("errors", "Those that the system refused."),
     counter_of<&operation_sum::cancelled>("cancelled", "Those that were cancelled.")}};
const observe::number_table<time_of_one> operation_times{
    "troupe_io",
    {"runtime", "operation"},
    {histogram_of<&time_of_one::took>(
        "duration_seconds", "Time from the start of an operation to its end, by samples.")}};

const observe::number_table<lazy_sum> lazy_numbers{
    "troupe_lazies",
    {"runtime", "lazy"},
    {counter_of<&lazy_sum::computed>("computed",
                                     "Lazies that were computed, by the type of their function."),
     counter_of<&lazy_sum::stolen>("stolen", "Lazies that a thread took from another one.")}};
const observe::number_table<time_of_one> lazy_times{
    "troupe_lazy",
    {"runtime", "lazy"},
    {histogram_of<&time_of_one::took>("duration_seconds", "Time that one lazy took, by samples.")}};

const observe::number_table<class_sum> class_numbers{
    "troupe_class",
    {"runtime", "class"},
    {in_summary("alive", gauge_of<&alive_of>("actors", "Actors of the class that have not ended.")),
     counter_of<&class_sum::spawned>("spawned", "Actors of the class that began."),
     counter_of<&class_sum::ended>("ended", "Actors of the class that ended."),
     in_summary("suspended",
                gauge_of<&suspended_of>("suspended_turns", "Turns of the class that wait."))}};

const observe::number_table<handler_sum> handler_numbers{
    "troupe_handler",
    {"runtime", "class", "handler"},
    {counter_of<&handler_sum::messages>("messages", "Messages handled."),
     in_summary("resumed", counter_of<&handler_sum::resumed>(
                               "resumptions", "How often the handler's coroutine was resumed.")),
     counter_of<&handler_sum::failures>("failures", "Exceptions that left the handler.")}};
const observe::number_table<times_of_handler> handler_times{
    "troupe_handler",
    {"runtime", "class", "handler"},
    {histogram_of<&times_of_handler::took>(
         "duration_seconds", "Time that one message or one resumption took, by samples."),
     histogram_of<&times_of_handler::waited>("wait_seconds",
                                             "How long messages lay in the mailbox, by samples.")}};

}  // namespace troupe::observing
