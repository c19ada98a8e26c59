// choices: the questions that a simulation asks: which runnable is next, how long a turn is, which
// case of a select wins, when sent bytes arrive. All of them go through one function, decide(),
// so that a search or a replay can take the place of the seed.
//
// A question names the runnable or the connection that it is about. A name follows from the name of
// the maker and from its number among the maker's children: it is therefore the same in each run,
// at whatever address, and a change elsewhere in the program does not change it. The maker of a
// runnable is the one in whose turn it became ready first; outside of turns it is the program.
// Thread: the simulation's own; for runnable_names, any under the simulation's mutex.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

#include "sched/runnable.hpp"

namespace troupe::sched {

using choice_name = std::uint64_t;
inline constexpr choice_name program_name = 0;  // the maker outside of turns
choice_name child_name(choice_name maker, std::uint32_t nth) noexcept;

// A runnable or a connection by its maker and its number among the maker's children.
struct lineage {
  choice_name name = program_name;
  choice_name maker = program_name;
  std::uint32_t nth = 0;
};

// The data for a simulated connection's choices.
struct connection_choices : lineage {
  // A linear generator: a Mersenne twister has 2.5 KiB, and a simulation has many sockets.
  std::minstd_rand random;
};

enum class choice_kind : std::uint8_t {
  next,         // which of the ready runnables runs
  turn_length,  // how much the turn, or the visit of a thread, may do
  ready_units,  // how many ready awaits a call has until others run: once for the runtime
  look_at_io,   // whether I/O is looked at before the next turn
  wins,         // which of the ready cases of a select happens
  turn_time,    // how much virtual time a turn takes
  aside_time,   // when a call on a side thread is done
  value,        // a random number that the program or the library asks for
  call,         // the effect of a call on files, and the order of events
  delay,        // when the bytes sent to the connection arrive
  outcome,      // in which pieces, and which calls on the connection are interrupted
};

// Where the simulated network, a file or a storage may fail. A seed has no faults; a search has
// (exploring/).
enum class fault_point : std::uint8_t {
  send,     // of a socket
  file,     // an operation on a file, before it begins
  write,    // of a file, or a sync
  storage,  // a call of a storage of durable actors, or a statement of a SQLite file
  commit,   // such a call that stores something, beside the point before
};
inline constexpr std::size_t fault_point_count = 5;
enum class fault : std::uint8_t {
  none,
  cut,          // of a send: both ends of the connection are reset
  lost,         // of a send: nothing arrives at either end any more; of a datagram: it is lost
  slow,         // of a send: it arrives fault_delay_ns later, on a connection all after it as well
  slow_file,    // the operation takes that long
  write_fails,  // with an error of the device
  storage_fails,   // the call has no effect
  storage_cut,     // the connection ends before the call has had an effect, which is not known
  storage_slow,    // the call begins fault_delay_ns later
  storage_stalls,  // the call waits for stall_ns, and then its connection ends in the same way
  commit_lost,     // the change is stored, and its answer is lost
};
inline constexpr std::int64_t fault_delay_ns = 10'000'000'000;
inline constexpr std::int64_t stall_ns = 900'000'000'000;

// The runnables among which one is chosen.
class choice_candidates {
 public:
  // Appends all of them, in the order of the answers.
  virtual void list(std::vector<lineage>& to) const = 0;

 protected:
  ~choice_candidates() = default;
};

struct choice_point {
  choice_kind kind;
  std::uint64_t bound;                       // the answer is below it
  choice_name name = program_name;           // of the runnable whose turn it is
  connection_choices* connection = nullptr;  // for delay and outcome
  const choice_candidates* among = nullptr;  // for next
};

// Answers the questions. The last five functions are for a search (exploring/); a seed needs none.
class choice_source {
 public:
  // An answer to `next`: none of them runs before the time has moved to the next timer or the next
  // event of I/O.
  static constexpr std::uint64_t time_passes = UINT64_MAX;

  virtual ~choice_source() = default;
  virtual std::uint64_t decide(const choice_point& at) = 0;
  virtual void begin(connection_choices& choices) = 0;
  // Whether `next` is also asked if only one runnable is ready.
  virtual bool asks_always() const noexcept { return false; }
  // The maker of runnables and connections outside of turns.
  virtual choice_name root() const noexcept { return program_name; }
  // `subject`: the connection of a send, or the storage; null: neither has a name.
  virtual fault fault_at(fault_point where, const lineage* subject) {
    static_cast<void>(where), static_cast<void>(subject);
    return fault::none;
  }
  // After each turn, and when the program is out of work. Both may throw, out of run().
  virtual void after_turn(std::int64_t now_ns) { static_cast<void>(now_ns); }
  virtual void out_of_work(std::uint64_t dead_letters) { static_cast<void>(dead_letters); }
};

// By a seed. There is a stream of random numbers for each purpose: numbers drawn from one change
// nothing that is drawn from another. A program that asks for one more number, or sends a longer
// text, therefore has the same schedule.
class seeded_source final : public choice_source {
 public:
  explicit seeded_source(std::uint64_t seed);
  std::uint64_t decide(const choice_point& at) override;
  void begin(connection_choices& choices) override;

 private:
  __extension__ using wide = unsigned __int128;
  enum stream : std::uint8_t { turns, time, values, calls, selects, streams };
  std::uint64_t draw(std::uint64_t bound, stream from);
  std::uint64_t turn_length(std::uint64_t most);
  std::uint64_t ready_units(std::uint64_t most) const;
  // A number below `bound` that stays in proportion when the bound changes.
  static std::uint64_t share_of(std::uint64_t bound, std::uint64_t drawn) noexcept {
    return static_cast<std::uint64_t>((static_cast<wide>(drawn) * bound) >> 64);
  }

  const std::uint64_t seed_;
  std::array<std::mt19937_64, streams> random_;
};

// The names of runnables. Under the simulation's mutex. No policy but work stealing uses the
// deferred_slot of a runnable: here 0 means that it has a name.
class runnable_names {
 public:
  explicit runnable_names(choice_name root = program_name) noexcept : program_{{root}} {}
  // Without memory for it the runnable has the program's name.
  void name_if_new(runnable& item, bool in_turn) noexcept;
  choice_name of(const runnable& item) const noexcept { return lineage_of(item).name; }
  lineage lineage_of(const runnable& item) const noexcept;
  // Returns the runnable's name.
  choice_name begin_turn(const runnable& item) noexcept;
  void end_turn() noexcept { running_ = &program_; }
  // A name for something that the turn makes and that is no runnable.
  lineage new_child(bool in_turn) noexcept;
  struct named : lineage {
    std::uint32_t children = 0;
  };
  // An actor that becomes quiet gives its runnable up, and a message makes a new runnable.
  named forget(runnable& item) noexcept;
  // The same runnable again.
  void restore(runnable& item, const named& known) noexcept;

 private:
  named program_;
  named* running_ = &program_;
  std::unordered_map<const runnable*, named> all_;  // never walked: it is ordered by addresses
};

}  // namespace troupe::sched
