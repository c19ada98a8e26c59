// summary: the state of one runtime as JSON: its metrics, and the work of its actors by class
// and handler. docs/guide/observing.md explains each member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "actor/scan/actor_scan.hpp"
#include "actor/waits/suspended.hpp"
#include "observe/numbers/tables.hpp"
#include "runtime/observing/numbers/json_text.hpp"
#include "task/timers/timers.hpp"
#include "troupe/actor/method_message.hpp"

namespace troupe::observing {

struct observed_runtime;

// Appends an object. Throws std::bad_alloc.
void write_summary(json_text& out, observed_runtime& observed);

// Adds all numbers of the runtime to tables; `runtime` is its label. With `components_only` it adds
// the numbers of its components alone. Throws std::bad_alloc.
void collect_numbers(observe::row_sink& rows, const std::string& runtime,
                     observed_runtime& observed, bool components_only);

// Adds the numbers of the process, which no runtime has: its own instruments, its log, and its use
// of the system.
void collect_process(observe::number_tables& tables, bool components_only);

// Appends an object with a page of at most `most` actors, from the id `from` on, and the id of the
// next page (0: none). Of one class only, if `of_class` is not empty.
void write_actors(json_text& out, observed_runtime& observed, std::uint64_t from, std::size_t most,
                  std::string_view of_class);

// Appends an object with the actors that have most mail, the longest mailbox first.
void write_longest(json_text& out, observed_runtime& observed, std::size_t most,
                   std::string_view of_class);

// The handlers that the runtime has counted so far, and their names. Throws std::bad_alloc.
class known_handlers {
 public:
  explicit known_handlers(const observed_runtime& observed);
  // Empty for a function that is none of them.
  std::string_view name_of(actor::message::handler method) const noexcept;

 private:
  std::unordered_map<actor::message::handler, std::string_view> names_;
};

// The known facts of actors, as objects.
class actor_writer {
 public:
  explicit actor_writer(const observed_runtime& observed);
  // `waits`: of its suspended calls the one that has waited longest, or null.
  void write(json_text& out, const actor::seen_actor& seen,
             const actor::suspended_call* waits = nullptr);

 private:
  const observed_runtime& observed_;
  const known_handlers handlers_;
  // The handlers of the actors in turns; an actor's own word gets the handler at its turn's end.
  std::unordered_map<const void*, actor::message::handler> running_;
  actor::parent_ids parents_;
};
// An object with the numbers of the process, and the name of its host.
void write_process(json_text& out);

inline constexpr std::string_view timer_source_names[tasks::timer_sources] = {
    "sleep", "after", "every", "timeout", "io_timeout", "deadline", "runtime"};

}  // namespace troupe::observing
