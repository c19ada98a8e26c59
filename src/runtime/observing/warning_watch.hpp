// warning_watch: looks at one runtime at intervals, and keeps its problems as warnings.
//
// It only looks: no worker does anything for it but count (actor/counting/message_counts.hpp,
// tasks::running_state::begun). Its long looks, at all actors and all waits, use at most one 50th
// of a processor; a warning stays active for longer than these looks are apart.
// Thread: the observer's, unless a function says otherwise; at the end the one that destroys the
// runtime.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actor/scan/actor_scan.hpp"
#include "base/atomics.hpp"
#include "runtime/observing/warnings/count_watch.hpp"
#include "runtime/observing/warnings/number_watch.hpp"
#include "runtime/observing/warnings/wait_watch.hpp"
#include "runtime/observing/warnings/warning_list.hpp"
#include "task/running/running.hpp"

namespace troupe {
class runtime_core;
}

namespace troupe::observing {

class warning_watch {
 public:
  explicit warning_watch(runtime_core& core);
  warning_watch(const warning_watch&) = delete;
  warning_watch& operator=(const warning_watch&) = delete;

  // Makes the checks that are due at this time. Returns when it is to be called again.
  std::int64_t look(std::int64_t now_ns) noexcept;
  // Warns of the stalls that run() has noted.
  void tell_stalls() noexcept;
  // For how long a wait has lasted at least, by awaited::first_seen.
  std::int64_t ns_since(std::uint32_t first_seen) const noexcept {
    return waits_.ns_since(first_seen);
  }
  const warning_list& list() const noexcept { return list_; }

  // The mail of one class at the last look at all actors.
  struct class_mail {
    std::uint64_t messages = 0, longest = 0;
  };
  const std::map<std::string_view, class_mail>& mail() const noexcept { return mail_; }

 private:
  // A part of work that a thread ran when it was looked at.
  struct running_part {
    tasks::running_work work;
    const actor::cell_type* type;  // null: no actor's
    std::uint64_t number;          // differs from the numbers of the same handler's other parts
    std::int64_t first_ns;         // when it was seen first
    bool counted = false;          // as a warning
    bool is_same_as(const running_part& other) const noexcept {
      return work.system_thread == other.work.system_thread && work.actor == other.work.actor &&
             work.method == other.work.method && number == other.number;
    }
  };
  struct growth {
    std::int64_t since_ns;
    std::uint32_t first, last;  // lengths
    std::uint64_t look;         // that saw it last
    bool counted = false;
  };
  // The mailboxes of one class that have grown for too long.
  struct grown {
    actor::seen_actor longest{};
    std::int64_t since_ns = 0;
    std::uint64_t more = 0;  // that have not been counted before
  };

  void look_at_running(std::int64_t now);
  std::vector<running_part> what_runs(std::int64_t now) const;
  void add_running(const running_part& part, std::int64_t now, bool is_new);
  void look_at_all(std::int64_t now);
  void look_at_samples();
  void look_at_mailboxes(std::int64_t now);
  bool has_grown(const actor::seen_actor& seen, std::int64_t now, grown& of_class);
  void look_at_counts(std::int64_t now);
  void look_at_blocking_pool();
  void look_at_descriptors();
  void look_at_membarrier();

  runtime_core& core_;
  const warning_limits& limits_;
  const std::int64_t began_ns_, period_ns_;
  std::int64_t next_running_ns_, next_all_ns_, last_all_ns_;
  warning_list list_;
  wait_watch waits_;
  count_watch counts_;
  number_watch numbers_;

  std::vector<running_part> running_;
  bool looks_twice_ = false;  // the next look at running parts follows soon on the last one
  std::int64_t idle_ns_ = 0;  // pause while no handler runs
  // the calls so far of a handler that a sample showed to be too long
  std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> sampled_;
  std::map<std::string_view, class_mail> mail_;        // of the classes that have mail
  std::unordered_map<std::uint64_t, growth> growing_;  // by the actor's id
  std::uint64_t looks_ = 0;
  bool pool_was_full_ = false;
  std::uint64_t refusals_ = base::asymmetric::refusals();  // of membarrier, at the last look
};

}  // namespace troupe::observing
