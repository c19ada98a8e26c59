// schedule: the choices for an execution of a simulated program, and the observations of it.
//
// A schedule of holds is "the oldest runnable first, one message a turn, but the held turns wait".
// A file keeps this form: each hold names one turn by its maker and its number among the maker's
// children. It therefore means the same turn in each execution, and in a changed program as long as
// that turn exists. The other strategies only search (searching/portfolio.hpp); their finds become
// holds (searching/shrinking.hpp).
// Thread: the simulation's own.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sched/policies/choices.hpp"

namespace troupe::sched::exploring {

// One turn: the `run`-th one, from 0 on, of a runnable. A runnable has several turns if it had
// several messages.
struct turn_id {
  choice_name maker = program_name;
  std::uint32_t nth = 0;
  std::uint32_t run = 0;
  choice_name name() const noexcept { return child_name(maker, nth); }
  auto operator<=>(const turn_id&) const = default;
};

struct hold {
  turn_id held;
  // Until that turn has ended; without it, until nothing else can run. In either case a turn that
  // is held runs when there is nothing else.
  std::optional<turn_id> until;
  // Time passes first: timers expire, and sent messages arrive.
  bool late = false;
  // `held` is no turn but a connection: all that is sent to it arrives as late as it may.
  bool connection = false;
  // `held` is no turn, and nothing waits: that fault happens at the `run`-th send of a connection
  // or call of a storage, from 0 on; or at the `nth` operation or write of the program's files, or
  // statement of its SQLite files, from 1 on.
  fault injected = fault::none;
  bool is_turn() const noexcept { return !connection && injected == fault::none; }
  bool operator==(const hold&) const = default;
};

enum class strategy : std::uint8_t {
  holds,        // as above
  random,       // the seed decides everything, as without a search
  one_message,  // the seed decides whose turn is next; a turn handles one message
  priorities,   // the runnable of the highest priority; it changes at depth - 1 points
};

// A fault at the `number`-th of the places where it can happen, from 1 on.
struct planned_fault {
  fault kind = fault::none;
  std::uint64_t number = 0;
  bool operator==(const planned_fault&) const = default;
};

constexpr fault_point place_of(fault kind) noexcept {
  switch (kind) {
    case fault::write_fails:
      return fault_point::write;
    case fault::slow_file:
      return fault_point::file;
    case fault::storage_fails:
    case fault::storage_cut:
    case fault::storage_slow:
    case fault::storage_stalls:
      return fault_point::storage;
    case fault::commit_lost:
      return fault_point::commit;
    default:
      return fault_point::send;
  }
}
using fault_counts = std::array<std::uint64_t, fault_point_count>;  // by fault_point

struct schedule {
  strategy by = strategy::holds;
  std::uint64_t seed = 1;
  std::vector<hold> holds;
  // For `holds`: the numbers of runnables, in the order in which they first become ready; of turns
  // of such that become ready again, as a suspended coroutine does; and of connections, in the
  // order in which they are made. They become holds when they are met.
  std::vector<std::uint64_t> held_arrivals;
  std::vector<std::uint64_t> held_returns;
  std::vector<std::uint64_t> held_connections;
  std::vector<planned_fault> faults;  // become holds as well
  bool late = false;
  // For `priorities`.
  unsigned depth = 1;
  bool inherits = false;             // a runnable's first child has the priority of its maker
  std::uint64_t turns_expected = 0;  // the points lie below it; after twice as many, it is random
  // More turns are a suspected livelock.
  std::uint64_t turns_max = UINT64_MAX;
};

struct turn_seen {
  turn_id id;
  std::uint64_t arrived = 0;  // when it became ready, among all of its runtime that did
  std::uint64_t begun = 0;    // how many turns had begun when it became ready
  unsigned runtime = 0;
};

inline constexpr std::uint64_t turns_a_hash = 1'000;

// The names of two handlers of one actor: the second one ran directly after the first one.
using handler_order = std::pair<std::string, std::string>;

// The observations. Several simulated runtimes of one program share them.
struct execution {
  explicit execution(schedule chosen) : plan(std::move(chosen)), met(plan.holds.size()) {}

  schedule plan;
  bool records = false;
  bool stops_on_failure = false;  // run() throws the first failure at once
  // Called after each turn with the virtual time, and when a runtime is out of work with the number
  // of its dead letters. They throw their findings.
  std::function<void(std::int64_t)> on_turn;
  std::function<void(std::uint64_t)> on_quiet;
  // Called with each line of a file of observations (seen_file.hpp), if there is such a file.
  std::function<void(const std::string&)> on_seen;
  // Called when a property does not hold, in the handler that found it.
  std::function<void()> on_break;
  // Called when a fault happens, within the call that fails.
  std::function<void(const hold&)> on_fault;
  std::string broken;  // the first property that did not hold

  std::uint64_t turns = 0;
  std::uint64_t arrivals = 0;  // runnables that became ready for the first time
  std::uint64_t returns = 0;   // times that one became ready again
  std::uint64_t connections = 0;
  fault_counts fault_points{};
  unsigned runtimes = 0;
  std::string program;                               // its build id, if another process ran it
  std::uint64_t hash = 14'695'981'039'346'656'037u;  // of the names of all turns
  std::vector<std::uint64_t> hashes;                 // each 1,000 turns
  std::vector<hold> new_holds;  // of held_arrivals, held_returns, held_connections and faults
  std::vector<char> met;        // of plan.holds
  // Of the arrivals, and of the returns, those that were not alone when they ran.
  std::vector<std::uint64_t> contested, contested_returns;
  std::vector<turn_seen> seen;  // if it records

  // If its handlers are watched (handler_watch.hpp).
  bool is_watched = false;
  std::set<handler_order> orders;
  std::uint64_t state = 0;             // of mailboxes and waits (livelock.hpp)
  const char* last_handler = nullptr;  // the one that began last
};

}  // namespace troupe::sched::exploring
