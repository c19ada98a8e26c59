#include "runtime/environment.hpp"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>

#include "observe/flight/recorder.hpp"
#include "runtime/pool_size.hpp"
#include "sched/exploring/explored.hpp"
#include "troupe/base/error.hpp"

namespace troupe {
namespace {

constexpr unsigned workers_max = 1024;

// Reads the variable's value as a number; false when it is not set, or empty.
bool read_number(const char* name, std::uint64_t least, std::uint64_t most, std::uint64_t& value) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return false;
  const char* end = text + std::strlen(text);
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text, end, number);
  if (parsed.ec != std::errc{} || parsed.ptr != end || number < least || number > most) {
    throw option_error(std::string("troupe: environment variable ") + name + "=" + text +
                       ": must be a whole number from " + std::to_string(least) + " to " +
                       std::to_string(most));
  }
  value = number;
  return true;
}

io_backend resolve_io(io_backend chosen, policy with) {
  if (const char* name = std::getenv("TROUPE_IO"); name != nullptr && *name != '\0') {
    const std::string wanted = name;
    if (wanted == "auto") {
      chosen = io_backend::automatic;
    } else if (wanted == "io_uring") {
      chosen = io_backend::io_uring;
    } else if (wanted == "epoll") {
      chosen = io_backend::epoll;
    } else if (wanted == "simulated") {
      chosen = io_backend::simulated;
    } else {
      throw option_error("troupe: environment variable TROUPE_IO=" + wanted +
                         ": must be auto, io_uring, epoll or simulated");
    }
  }
  if (with == policy::simulated) return io_backend::simulated;
  if (chosen == io_backend::simulated) {
    throw option_error(
        "troupe: runtime_options::io = simulated: it needs policy::simulated, whose time is "
        "virtual");
  }
  return chosen;
}

void resolve_failures(runtime_options& options) {
  if (options.failures_kept == 0) {
    throw option_error(
        "troupe: runtime_options::failures_kept = 0: must be at least 1, for run() throws the "
        "first failure");
  }
  std::uint64_t number = 0;
  if (read_number("TROUPE_FAILURES_KEPT", 1, SIZE_MAX, number)) options.failures_kept = number;
  if (read_number("TROUPE_FAILURE_LINES", 0, UINT_MAX, number))
    options.failure_lines = static_cast<unsigned>(number);
  if (read_number("TROUPE_STOP_ON_FAILURE", 0, 1, number)) options.stop_on_failure = number != 0;
}

void resolve_warnings(runtime_options& options) {
  const warning_limits& limits = options.warnings;
  const time_span times[] = {limits.handler, limits.mailbox, limits.growth,  limits.ask,
                             limits.lock,    limits.io,      limits.request, limits.statement,
                             limits.timer,   limits.again,   limits.kept};
  if (std::ranges::any_of(times, [](time_span span) { return span.count() < 0; }) ||
      limits.descriptors_percent > 100) {
    throw option_error(
        "troupe: runtime_options::warnings: times must not be negative, and descriptors_percent at "
        "most 100; 0 means no warnings of that kind");
  }
  std::uint64_t number = 0;
  if (read_number("TROUPE_WARNING_LINES", 0, UINT_MAX, number))
    options.warning_lines = static_cast<unsigned>(number);
}

void resolve_flight_recorder(runtime_options& options) {
  using recorder = observe::flight_recorder;
  constexpr unsigned mib = 20;
  std::uint64_t number = 0;
  if (read_number("TROUPE_FLIGHT_RECORDER", 0, recorder::bytes_most >> mib, number))
    options.flight_recorder_bytes = static_cast<std::size_t>(number) << mib;
  if (options.flight_recorder_bytes == 0 ||
      (options.flight_recorder_bytes >= recorder::bytes_least &&
       options.flight_recorder_bytes <= recorder::bytes_most))
    return;
  throw option_error("troupe: runtime_options::flight_recorder_bytes = " +
                     std::to_string(options.flight_recorder_bytes) + ": must be 0, or " +
                     std::to_string(recorder::bytes_least) + " to " +
                     std::to_string(recorder::bytes_most));
}

// Sets the options of a runtime within a search or a replay. explore() reports the failures itself.
void resolve_explored(runtime_options& options) {
  const auto execution = sched::exploring::execution_here();
  if (execution == nullptr) return;
  options.policy = policy::simulated;
  options.seed = execution->plan.seed;
}

constinit thread_local bool makes_own_service = false;

policy policy_named(const std::string& wanted) {
  if (wanted == "work_stealing") return policy::work_stealing;
  if (wanted == "shared_queue") return policy::shared_queue;
  if (wanted == "simulated") return policy::simulated;
  if (wanted == "one_thread") return policy::one_thread;
  throw option_error("troupe: environment variable TROUPE_POLICY=" + wanted +
                     ": must be work_stealing, shared_queue, simulated or one_thread");
}

// TROUPE_WORKERS is the limit of whoever starts the program. A simulation has the number that the
// program chooses, or always the same: its choices must not depend on the machine.
void resolve_workers(runtime_options& options) {
  constexpr unsigned of_simulations = 4;
  std::uint64_t number = 0;
  const bool is_limited = read_number("TROUPE_WORKERS", 1, workers_max, number);
  if (options.policy == policy::simulated) {
    if (options.workers == 0) options.workers = of_simulations;
    return;
  }
  if (options.policy == policy::one_thread) {
    options.workers = 1;
    return;
  }
  if (is_limited && (options.workers == 0 || options.workers > number))
    options.workers = static_cast<unsigned>(number);
  if (options.workers == 0) options.workers = usable_cpus();
}

}  // namespace

own_service::own_service() noexcept { makes_own_service = true; }
own_service::~own_service() { makes_own_service = false; }

runtime_options resolve(runtime_options options) {
  std::uint64_t number = 0;
  if (!makes_own_service && read_number("TROUPE_OBSERVE", 0, 1, number))
    options.observe = number != 0;
  if (options.workers > workers_max) {
    throw option_error("troupe: runtime_options::workers = " + std::to_string(options.workers) +
                       ": must be at most " + std::to_string(workers_max) +
                       "; 0 means one for each usable CPU");
  }
  if (options.blocking_threads == 0 || options.blocking_threads > workers_max) {
    throw option_error(
        "troupe: runtime_options::blocking_threads = " + std::to_string(options.blocking_threads) +
        ": must be 1 to " + std::to_string(workers_max));
  }
  if (options.turn.messages == 0 || options.turn.time.count() < 0) {
    throw option_error(
        "troupe: runtime_options::turn: messages must be at least 1, and time not negative");
  }
  if (read_number("TROUPE_SEED", 0, UINT64_MAX, number)) options.seed = number;
  if (const char* name = std::getenv("TROUPE_POLICY");
      !makes_own_service && name != nullptr && *name != '\0')
    options.policy = policy_named(name);
  if (!makes_own_service) resolve_explored(options);
  resolve_workers(options);
  resolve_failures(options);
  if (sched::exploring::explored_in_process() != nullptr) options.failure_lines = 0;
  if (const auto explored = makes_own_service ? nullptr : sched::exploring::execution_here();
      explored != nullptr && explored->stops_on_failure)
    options.stop_on_failure = true;
  resolve_warnings(options);
  resolve_flight_recorder(options);
  options.io = resolve_io(options.io, options.policy);
  return options;
}

}  // namespace troupe
