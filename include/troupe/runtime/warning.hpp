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

enum class warning_kind : std::uint8_t {
  long_handler,         // a handler, or a posted procedure, holds its thread for too long
  growing_mailbox,      // an actor gets more messages than it handles
  unanswered_ask,       // a turn, or a blocked thread, waits for an answer for too long
  blocking_pool_full,   // calls of blocking() wait for a thread
  descriptors_run_out,  // the process has opened most of the descriptors that it may have
  stall,                // run() was out of work while turns were suspended
};
inline constexpr std::size_t warning_kinds = 6;

// The name of the enumerator: "long_handler".
constexpr std::string_view name_of(warning_kind kind) noexcept {
  constexpr std::string_view names[warning_kinds] = {"long_handler",        "growing_mailbox",
                                                     "unanswered_ask",      "blocking_pool_full",
                                                     "descriptors_run_out", "stall"};
  return names[static_cast<std::size_t>(kind)];
}

// Findings of one kind that concern the same handler of the same class are one warning.
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
  std::string actor;           // the actor's class; empty where no actor is concerned
  std::string method;          // the handler; empty where none is concerned
  std::uint64_t actor_id = 0;  // ref::id() of the actor that was seen last; 0: not known
  // when it was first found, and when last
  std::chrono::steady_clock::time_point since, last;
  // How often it was found: calls of the handler, mailboxes, asks, or checks. Handlers are timed by
  // samples, which makes the number of calls an estimate.
  std::uint64_t times = 0;
  std::string text;  // a sentence about the last finding, and a sentence about the remedy
};

// When a runtime that is observed warns. 0 of a member: it does not warn of that.
struct warning_limits {
  // Time for which one handler, or one posted procedure, may hold its thread. Default 10 ms.
  // A class that says `static constexpr bool may_block = true` is left out.
  time_span handler = std::chrono::milliseconds(10);
  // Time for which a mailbox may grow, without being shorter in between. Default 10 s.
  time_span mailbox = std::chrono::seconds(10);
  // Shorter mailboxes cause no warning. Default 100 messages.
  std::size_t mailbox_messages = 100;
  // Time after which an ask should be answered. Default 5 s.
  time_span ask = std::chrono::seconds(5);
  // The part of the process's limit of open descriptors (RLIMIT_NOFILE) that may be in use, in
  // percent. Default 90; at most 100.
  unsigned descriptors_percent = 90;
  // Whether a full pool of threads for blocking() is worth a warning. Default true.
  bool blocking_pool = true;
  // A warning is repeated after this time at the earliest, and only if its cause was found again.
  // Default 60 s.
  time_span again = std::chrono::seconds(60);
};

}  // namespace troupe
