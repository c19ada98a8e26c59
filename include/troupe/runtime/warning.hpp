// warning: a problem that an observed runtime finds in its running program
// (runtime_options::observe; docs/guide/observing.md).
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "troupe/base/time_span.hpp"

namespace troupe {

// The kinds of trouble that a running program warns of.
enum class warning_kind : std::uint8_t {
  long_handler,          // a handler, or a posted procedure, holds its thread for too long
  failing_handler,       // exceptions leave a handler, again and again
  growing_mailbox,       // an actor gets more messages than it handles
  growing_class,         // actors of a class are spawned and do not end
  growing_suspended,     // more and more calls of a handler are suspended
  unanswered_ask,        // a turn, or a blocked thread, waits for an answer for too long
  wait_cycle,            // asks of actors wait for each other
  long_lock,             // a lock is held for too long, while calls wait for it
  long_io,               // a connect or a write takes too long
  dead_letters,          // messages are sent to actors that have ended
  late_timers,           // timers expire long after their time
  blocking_pool_full,    // calls of blocking() wait for a thread
  pool_exhausted,        // all resources of a pool are lent, and callers wait
  slow_requests,         // a route of an HTTP server answers slowly
  slow_statements,       // a database's statement takes long
  refused_clients,       // a server turns connections away
  exporter_unavailable,  // no collector takes the spans that are exported
  livelock,              // actors send to each other without end, and nothing else happens
  descriptors_run_out,   // the process has opened most of the descriptors that it may have
  stall,                 // run() was out of work while turns were suspended
  membarrier_refused,    // the system call was allowed at the start, and is not any more
};
inline constexpr std::size_t warning_kinds = 21;

// The name of the enumerator: "long_handler".
constexpr std::string_view name_of(warning_kind kind) noexcept {
  constexpr std::string_view names[warning_kinds] = {"long_handler",
                                                     "failing_handler",
                                                     "growing_mailbox",
                                                     "growing_class",
                                                     "growing_suspended",
                                                     "unanswered_ask",
                                                     "wait_cycle",
                                                     "long_lock",
                                                     "long_io",
                                                     "dead_letters",
                                                     "late_timers",
                                                     "blocking_pool_full",
                                                     "pool_exhausted",
                                                     "slow_requests",
                                                     "slow_statements",
                                                     "refused_clients",
                                                     "exporter_unavailable",
                                                     "livelock",
                                                     "descriptors_run_out",
                                                     "stall",
                                                     "membarrier_refused"};
  return names[static_cast<std::size_t>(kind)];
}

// Findings of one kind that concern the same handler of the same class are one warning. It is
// active until it was not found for warning_lasts, and is forgotten `warning_limits::kept` later.
//
// Example:
//     troupe::runtime_options options;
//     options.observe = true;
//     options.on_warning = [](const troupe::warning& one) {
//       std::cerr << troupe::name_of(one.kind) << ": " << one.text << '\n';
//     };
//     troupe::runtime rt(options);
//     rt.run();
struct warning {
  warning_kind kind{};
  std::string actor;  // the actor's class; empty where no actor is concerned
  // the handler; or the route, statement, pool or server, by its name; empty if none is concerned
  std::string method;
  std::uint64_t actor_id = 0;  // ref::id() of the actor that was seen last; 0: not known
  // since when it is active, and when it was last found
  std::chrono::steady_clock::time_point since, last;
  // The longest time that a handler, a wait or a growth took; for other kinds, the time that it was
  // active.
  time_span longest{};
  // How often it was found: calls of the handler, mailboxes, asks, or checks. Handlers are timed by
  // samples, which makes the number of calls an estimate.
  std::uint64_t times = 0;
  std::string subject;  // the thing in trouble, as in `text`: "&Sloth::climb of Sloth #12"
  std::string text;     // a sentence about the last finding
  std::string advice;   // a sentence about the remedy
};

// How long a warning stays active after it was last found.
inline constexpr std::chrono::seconds warning_lasts{10};

// When an observed runtime warns. A member of 0 turns its warning off.
struct warning_limits {
  // Time for which one handler, or one posted procedure, may hold its thread. Default 10 ms.
  // Classes with `static constexpr bool may_block = true` are left out.
  time_span handler = std::chrono::milliseconds(10);
  // Time for which a mailbox may grow without shrinking in between. Default 10 s.
  time_span mailbox = std::chrono::seconds(10);
  // Shorter mailboxes cause no warning. Default 100 messages.
  std::size_t mailbox_messages = 100;
  // Time for which the actors of a class, or the suspended calls of a handler, may grow in number
  // without a decrease in between. Default 10 s.
  time_span growth = std::chrono::seconds(10);
  // Fewer of them cause no warning. Default 1,000.
  std::size_t growth_least = 1000;
  // Time after which an ask should be answered. Default 5 s.
  time_span ask = std::chrono::seconds(5);
  // Time for which a lock may be held while calls wait for it. Default 5 s.
  time_span lock = std::chrono::seconds(5);
  // Time that a connect or a write may take. Default 5 s.
  time_span io = std::chrono::seconds(5);
  // Time within which 99 of 100 requests of a route should be answered. Default 1 s.
  time_span request = std::chrono::seconds(1);
  // The same for a database's statement. Default 100 ms.
  time_span statement = std::chrono::milliseconds(100);
  // How long after its time a timer may expire, in 99 of 100 cases. Default 20 ms.
  time_span timer = std::chrono::milliseconds(20);
  // Whether failing handlers, dead letters, livelocks, exhausted pools, refused clients, exporters
  // without a collector and a refused membarrier are worth a warning. Default true.
  bool others = true;
  // The part of the process's limit of open descriptors (RLIMIT_NOFILE) that may be in use, in
  // percent. Default 90; at most 100.
  unsigned descriptors_percent = 90;
  // Whether a full pool of threads for blocking() is worth a warning. Default true.
  bool blocking_pool = true;
  // A warning is repeated after this time at the earliest, and only if its cause was found again.
  // Default 60 s.
  time_span again = std::chrono::seconds(60);
  // A warning that was not found for so long is forgotten. Default 10 min.
  time_span kept = std::chrono::minutes(10);
};

}  // namespace troupe
