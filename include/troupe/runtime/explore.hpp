// explore: searches for a schedule under which a piece of a program fails, reduces it to the few
// turns that matter, and repeats it.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "troupe/actor/call.hpp"
#include "troupe/actor/ref.hpp"
#include "troupe/actor/settled_object.hpp"
#include "troupe/base/error.hpp"
#include "troupe/base/time_span.hpp"

namespace troupe {

// A property does not hold: of expect(), or of explored_run.
class expectation_failed : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::us, verdict::effect::unknown, verdict::again::never};
  }
};

// Throws expectation_failed with the line if the condition is false. Under explore() the execution
// has then failed, even if the exception is caught. Thread: any.
void expect(bool condition, std::source_location at = std::source_location::current());

// How long explore() searches, and which outcomes count as failures.
struct explore_options {
  unsigned schedules = 500;  // at most so many executions, without those that shrink
  time_span time = std::chrono::seconds(60);  // and at most so long
  std::uint64_t seed = 1;                     // of the search; TROUPE_SEED overrides it
  // After so many turns an execution is a suspected livelock if its mailboxes and the lines of its
  // waits are the same again and again; if not, it fails after twice as many. 0 (default): twenty
  // times the turns of the first execution, and 10,000.
  std::uint64_t turns = 0;
  bool dead_letters = false;  // a dead letter is a failure
  // Every third execution has a fault of the simulated network, of a file or of a storage: a
  // connection is cut, or nothing arrives by it any more, or for 10 s; a write or a sync fails; an
  // operation on a file takes 10 s; a call of a durable store's storage, or a statement of a SQLite
  // file, fails, loses its connection, takes 10 s or stalls, or a commit is stored and its answer
  // is lost. A failing execution is reduced to the faults and turns that matter.
  bool faults = false;
  // Names the file of a failure that was found, and selects the files to repeat. Default: the
  // function that calls explore().
  std::string name = {};
  // The folder in which to write the file, and its diagram as an .svg file beside it; it must
  // exist. Default: none is written.
  std::string folder = {};
};

// One execution, for the body.
class explored_run {
 public:
  // Calls the function each time that run() of a runtime has found the program out of work, before
  // run() returns. An exception from it is the failure of this execution.
  void at_quiescence(std::function<void()> check);
  // The condition must hold once within that span of virtual time, and before the program is out of
  // work. It is called after each turn until it holds.
  void eventually(std::function<bool()> condition, time_span within,
                  std::source_location at = std::source_location::current());
  // `holds(const T&)` must be true after each turn, from the end of the actor's constructor until
  // the actor ends. It is not called while a handler of the actor is suspended, unless the class is
  // reentrant: only then do other handlers see the state in between. It must not change anything.
  // The ref keeps the actor alive until the body returns. Errors: usage_error for a ref that refers
  // to no actor, or to one of a class that derives from T.
  //
  // Example:
  //     struct Account {
  //       int balance = 0;
  //       void change(int by) { balance += by; }
  //     };
  //     const troupe::explore_report report = troupe::explore([](auto& run) {
  //       troupe::runtime rt;
  //       auto account = rt.spawn<Account>();
  //       run.invariant(account, [](const Account& self) { return self.balance >= 0; });
  //       account.template tell<&Account::change>(5);
  //       rt.run();
  //     });
  template <class T, class Condition>
  void invariant(const ref<T>& watched, Condition holds,
                 std::source_location at = std::source_location::current()) {
    actor::cell* const cell = ref_access::cell_of(watched);
    check_class(cell, cell != nullptr && (cell->type == &actor::cell_type_of<T> ||
                                          cell->type == &actor::adopted_type_of<T>));
    invariants_.push_back({[kept = watched, cell, holds = std::move(holds)] {
                             const void* const object = actor::settled_object(*cell);
                             return object == nullptr || holds(*static_cast<const T*>(object));
                           },
                           cell->type->name, at});
  }

 private:
  friend class exploration;
  explored_run() = default;
  static void check_class(const actor::cell* watched, bool is_own);
  void after_turn(std::int64_t now_ns);
  void out_of_work();
  struct wish {
    std::function<bool()> holds;
    std::int64_t within_ns;
    std::source_location at;
  };
  struct rule {
    std::function<bool()> holds;
    std::string type;  // the name of the actor's class
    std::source_location at;
  };
  std::vector<std::function<void()>> checks_;
  std::vector<wish> wishes_;
  std::vector<rule> invariants_;
};

// The result of a search. It converts to true if the search found no failure, for EXPECT_TRUE;
// written to a stream, it names the failure and the way to repeat it.
struct explore_report {
  std::string failure;   // empty: none was found
  std::string schedule;  // the text of the file that repeats it
  // The handlers that led to the failure: turn, actor, sender with its source line, and, of a held
  // turn, where it runs without the hold. Source lines need a program with debugging information
  // (-g) and the program `addr2line` of binutils.
  std::string story;
  std::string diagram;   // the same as a sequence diagram: an SVG file
  std::string file;      // where that was written; empty if nowhere
  std::string strategy;  // that found it
  // The number of the failing execution, or of all executions if none failed.
  unsigned schedules = 0;
  unsigned shrinking_runs = 0;  // executions that reduced the schedule
  unsigned holds = 0;           // turns that must be late for the failure
  bool reduced = false;         // false: the schedule repeats the failure by its seed alone
  // Pairs of different handlers of an actor of which one ran directly after the other in some
  // execution of the search, and how many of them ran in both orders. A coroutine's next part
  // counts as its handler.
  unsigned handler_pairs = 0;
  unsigned pairs_in_both_orders = 0;
  std::string pairs_in_one_order;  // the others, a line each: "Stock::read before Stock::write"
  std::string unmet;  // the holds of a replay that the program did not meet, a line each
  explicit operator bool() const noexcept { return failure.empty(); }
};
std::ostream& operator<<(std::ostream& to, const explore_report& report);

// Calls the body once for each schedule, until one fails. All runtimes that the body makes, on the
// thread that called, are simulated, whatever their policy. An execution fails if the body throws
// (run() throws the failures of handlers, `stalled` for waits that never end, and `deadlock`), if a
// property does not hold, or if it does not end. The failing schedule is reduced to a few turns
// that have to be late.
//
// The body must do the same each time, but for the order of turns: it makes its objects anew, and
// takes random numbers only from troupe.
//
// TROUPE_REPLAY=FILE runs the body only by that file. TROUPE_REPLAY=FOLDER runs it first by each
// file of the folder that has the name of this exploration, and then searches.
//
// Thread: any that may call run(). Blocks for the whole search. Errors: option_error for a name
// with a line break, for a file that is no schedule and for a folder in which nothing can be
// written.
//
// Example:
//     struct Counter {
//       int value = 0;
//       void add() { ++value; }
//     };
//     const troupe::explore_report report = troupe::explore(
//         [](auto&) {
//           troupe::runtime rt;
//           auto counter = rt.spawn<Counter>();
//           for (int i = 0; i < 3; ++i) counter.template tell<&Counter::add>();
//           rt.run();
//         },
//         {.schedules = 20});
//     std::cout << report << '\n';
explore_report explore(const std::function<void(explored_run&)>& body,
                       const explore_options& options,
                       std::source_location from = std::source_location::current());
// With the default options.
explore_report explore(const std::function<void(explored_run&)>& body,
                       std::source_location from = std::source_location::current());

// Calls the body once by a schedule: the text of explore_report::schedule, or of a file. Thread and
// errors: as explore().
explore_report replay(const std::function<void(explored_run&)>& body, const std::string& schedule);

}  // namespace troupe
