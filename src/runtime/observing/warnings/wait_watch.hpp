// wait_watch: finds asks, locks and blocked threads that wait for too long, and asks that wait for
// each other.
// Thread: as warning_list.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "actor/waits/long_waits.hpp"
#include "runtime/observing/warnings/warning_list.hpp"

namespace troupe::observing {

class wait_watch {
 public:
  wait_watch(actor::actor_system& system, const runtime_options& options,
             std::int64_t began_ns) noexcept
      : system_(system), options_(options), began_ns_(began_ns) {}

  // Throws std::bad_alloc.
  void look(std::int64_t now_ns, warning_list& list);
  // Whether asks of the class were in a cycle a short time ago.
  bool is_in_cycle(std::string_view name) const { return classes_in_cycles_.contains(name); }
  // For how long a wait has lasted at least, by awaited::first_seen.
  std::int64_t ns_since(std::uint32_t first_seen) const noexcept;

 private:
  struct late_ask {
    actor::long_wait wait;
    std::uint64_t asked;  // the actor's id; 0: it has ended
  };
  // Waits that make one warning: the longest of them, how many there are, and how many of these no
  // earlier look has found.
  struct group {
    const actor::long_wait* longest = nullptr;
    std::uint64_t count = 0, more = 0;
    void add(const actor::long_wait& wait, std::uint32_t before) {
      if (longest == nullptr || wait.first_seen < longest->first_seen) longest = &wait;
      ++count;
      more += wait.first_seen > before;
    }
  };

  std::uint32_t units_before(std::uint32_t now, time_span limit) const noexcept;
  void add_cycles(std::vector<late_ask>& asks, std::uint32_t before, std::int64_t now_ns,
                  warning_list& list);
  static std::vector<const late_ask*> path_of(
      const std::map<std::uint64_t, const late_ask*>& cycle);
  void add_cycle(const std::vector<const late_ask*>& path, const group& calls,
                 warning_list& list) const;
  void add_asks(const std::vector<late_ask>& asks, std::uint32_t before, warning_list& list) const;
  void add_locks(const std::vector<actor::long_wait>& waits, std::uint32_t before,
                 warning_list& list) const;
  void look_at_blocked_threads(std::int64_t now_ns, warning_list& list);

  actor::actor_system& system_;
  const runtime_options& options_;
  const std::int64_t began_ns_;
  // When they were seen last: a look does not see the calls of actors that run meanwhile.
  std::map<std::uint64_t, std::int64_t> actors_in_cycles_;
  std::map<std::string_view, std::int64_t> classes_in_cycles_;
  std::uint32_t asks_before_ = 0, locks_before_ = 0;         // as look_at_waits, at the last look
  std::unordered_map<std::uint64_t, std::int64_t> blocked_;  // since when, by its number
};

}  // namespace troupe::observing
