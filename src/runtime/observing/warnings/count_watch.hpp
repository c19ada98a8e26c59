// count_watch: finds trouble in the counts of a runtime: handlers that fail, classes and suspended
// calls that grow in number, dead letters, slow I/O, late timers, and messages without any other
// work. Thread: as warning_list.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "actor/system/actor_system.hpp"
#include "observe/numbers/number.hpp"
#include "runtime/observing/warnings/repetition.hpp"
#include "runtime/observing/warnings/warning_list.hpp"
#include "task/timers/timers.hpp"

namespace troupe::observing {

class count_watch {
 public:
  count_watch(actor::actor_system& system, const runtime_options& options) noexcept
      : system_(system), options_(options) {}

  // Throw std::bad_alloc. `explains` returns whether another warning explains why the calls of a
  // class wait.
  using explains = std::function<bool(std::string_view)>;
  void look(std::int64_t now_ns, const explains& explained, warning_list& list);
  void look_at_dead_letters(std::uint64_t now, std::int64_t now_ns, warning_list& list);
  // The samples of one kind of I/O operation, in ticks.
  void look_at_operation(std::string_view name, const observe::value_counts& took,
                         double ns_per_tick, std::int64_t now_ns, warning_list& list);
  // `messages` were handled so far; `others` is the sum of all counts of other work.
  void look_at_progress(std::uint64_t messages, std::uint64_t others, std::int64_t now_ns,
                        warning_list& list);
  void look_at_timers(tasks::timers& clock, std::int64_t now_ns, warning_list& list);

 private:
  struct seen_failures {
    std::uint64_t count = 0;
    repetition again{};
  };
  struct seen_class {
    growing_number alive{}, suspended{};
    bool is_counted = false, are_suspended_counted = false;  // as warnings
  };
  void look_at_failures(std::int64_t now_ns, warning_list& list);
  void look_at_classes(std::int64_t now_ns, const explains& explained, warning_list& list);
  void add_livelock(std::int64_t now_ns, std::uint64_t per_second, bool is_new,
                    warning_list& list) const;
  void add_growing(std::string_view name, std::uint64_t alive, std::int64_t grown_ns, bool is_new,
                   warning_list& list) const;
  void add_suspended(std::string_view name, std::uint64_t suspended, std::int64_t grown_ns,
                     bool is_new, warning_list& list) const;

  actor::actor_system& system_;
  const runtime_options& options_;
  std::map<std::pair<std::string_view, std::string_view>, seen_failures> failures_;
  std::map<std::string_view, seen_class> classes_;
  std::uint64_t dead_letters_ = 0;
  repetition dead_letters_again_, late_again_;
  observe::distribution late_{};  // timers, at the last look
  struct seen_operation {
    std::uint64_t slow = 0;
    repetition again{};
  };
  std::map<std::string_view, seen_operation> operations_;
  struct seen_progress {
    std::uint64_t messages = 0, others = 0;
    std::int64_t look_ns = 0, since_ns = 0;  // the last look; the last one that saw other work
    bool is_counted = false;
  };
  seen_progress progress_{};
};

}  // namespace troupe::observing
