// options: all options of a runtime, and of one actor.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "troupe/actor/supervision.hpp"
#include "troupe/actor/when_full.hpp"
#include "troupe/base/error.hpp"
#include "troupe/base/time_span.hpp"
#include "troupe/context/context.hpp"
#include "troupe/io/backend.hpp"
#include "troupe/runtime/warning.hpp"

namespace troupe {

// How the pool shares work. All policies give the same guarantees.
enum class policy {
  // one queue for each worker; an idle worker steals from a worker that has too much work
  work_stealing,
  shared_queue,  // one queue for all workers; the simple reference
  simulated,  // one thread inside run(), seeded choices, virtual time; a seed replays the same run
  // One thread, which is the one inside run(): it is the only worker, and also runs the actors of
  // on_main and the timers. Nothing happens outside of run(), run_once() and poll(). A system call
  // costs less in a process with one thread. blocking(), pinned(), `observe`, the log and
  // file operations that would wait still start threads.
  one_thread,
};

// An exception that left a handler, the constructor of a pinned actor, or a posted procedure.
struct failure {
  failure() = default;
  failure(const failure&) = default;
  failure(failure&&) noexcept = default;
  // Assignment swaps, so that the old members are destroyed in the right order: the exception
  // before the memory that it may refer to.
  failure& operator=(failure other) noexcept {
    memory.swap(other.memory);
    std::swap(what, other.what);
    actor.swap(other.actor);
    method.swap(other.method);
    std::swap(actor_id, other.actor_id);
    return *this;
  }

  // the context that the exception may refer to; this object keeps it alive
  std::shared_ptr<const void> memory;
  std::exception_ptr what;
  std::string actor;           // the actor's class; empty for a posted procedure
  std::string method;          // the method or callable, "constructor", "post", or "lazy"
  std::uint64_t actor_id = 0;  // ref::id() of the actor; 0 for a posted procedure
};

// A message that no actor will handle.
struct dead_letter {
  std::string actor;  // the class of the actor to which it was sent
  // the method or callable; "constructor" for an actor with a thread of its own that was never
  // constructed
  std::string method;
  std::uint64_t actor_id = 0;  // ref::id() of that actor
};

// How much an actor may do in one turn before the next actor of its worker runs.
struct turn_limits {
  // Messages in one turn. Default 4096; at least 1. If a sender sends more in one of its turns, the
  // receiver's mailbox may grow. 1 is the fairest, and costs one queue operation for each message.
  unsigned messages = 4096;
  // Time for one turn, in microseconds. Default 100; the largest value means no limit. The turn
  // checks the clock after nine messages; then after each message if the actor's handlers are slow,
  // otherwise at intervals that follow their speed. A handler is never interrupted.
  time_span time = std::chrono::microseconds(100);
};

// Options of a runtime. The comment of each names its unit, its default and its effect. A value
// that makes no sense is an option_error, which the runtime's constructor throws.
//
// Example:
//     troupe::runtime rt({.workers = 2, .on_error = [](const troupe::failure& f) {
//                           std::cerr << f.actor << '\n';
//                         }});
//     rt.run();
struct runtime_options {
  // Threads of the pool. 0 (default): one thread for each CPU that the process may use (affinity
  // and cgroup quota), or 3 if that number is unknown. At most 1024; more is an option_error. If
  // the environment variable TROUPE_WORKERS is set, it replaces 0, and is an upper limit of a
  // number that is set here. The simulated policy has one thread; with it this number (4 for 0)
  // only decides into how many parts parallel work is cut. policy::one_thread has one worker,
  // whatever this number is.
  unsigned workers = 0;

  // Default work_stealing. The environment variable TROUPE_POLICY (the policy's name) overrides it.
  troupe::policy policy = troupe::policy::work_stealing;

  // Seed for the choices of the simulated policy, and for the choice of the worker from which an
  // idle worker steals. Default 1. TROUPE_SEED overrides it.
  std::uint64_t seed = 1;

  // Maximum number of threads for calls that block (blocking()). Each thread starts when it is
  // first needed; further calls queue. Default 16; at least 1, at most 1024, else an option_error.
  unsigned blocking_threads = 16;

  // Maximum number of lazies that one thread may have queued. Default 10,000. A lazy beyond it runs
  // in the thread that needs its value, so that the queue stays bounded.
  std::size_t queued_lazies = 10'000;
  // Bytes that resources may occupy (resource.hpp). Above it, lazies that make more resources run
  // only when their value is wanted. It is a soft limit: a wanted lazy always runs. Default 0: no
  // limit; workers run ahead as far as lazies are queued.
  std::size_t resource_bytes = 0;
  // True: each lazy and each fork runs in the thread that needs it, when its value is needed. For
  // debugging. In a handler this occupies the worker until the lazy is done. Default false.
  bool serial_lazies = false;
  // False: no thread takes lazies, or parts of forks, from a thread that is at work on its own
  // ones. Then the work for one get() or co_await runs in one thread at a time, in the order of a
  // sequential program, though not always in the same thread. For debugging, and to measure the
  // gain of sharing. Default true.
  bool steal_lazies = true;

  // True: SIGQUIT (Ctrl-\ on a terminal) writes runtime::dump() to standard error and does not end
  // the program. Costs one thread that sleeps until then. When the last runtime with this option
  // ends, the former handler of the signal is restored. Default false.
  bool dump_on_sigquit = false;

  // The mechanism for I/O. Default automatic: epoll, which is faster for servers
  // (docs/decisions/io_rings.md), and `simulated` under policy::simulated, where no other is
  // possible. The environment variable TROUPE_IO (auto, io_uring, epoll) overrides it. If io_uring
  // is chosen but the system does not offer it, the runtime uses epoll, with one line on standard
  // error about it.
  io_backend io = io_backend::automatic;

  // For actors that do not set their own limits.
  turn_limits turn{};

  // Called for each failure when it happens, on the thread on which it happened; run() throws the
  // failure as well. It must not throw. Default: none; each failure then writes a line to standard
  // error (`failure_lines`).
  std::function<void(const failure&)> on_error{};

  // Maximum number of failures that are kept for run() to throw, and for errors() and
  // take_errors(). The first ones, up to half of the limit, and the newest ones are kept; those
  // between them are dropped and counted in metrics().failures_dropped. Default 1,000; at least 1,
  // else an option_error. The environment variable TROUPE_FAILURES_KEPT overrides it.
  std::size_t failures_kept = 1'000;
  // Maximum bytes of the kept failures, with the contexts to which their exceptions refer. The very
  // first failure is kept whatever its size. Default 4 MiB.
  std::size_t failure_bytes = std::size_t{4} << 20;
  // Maximum number of lines in one second that failures write to standard error if there is no
  // on_error. One more line counts the lines left out. A failure does not wait while a pipe at
  // standard error is full: its line is left out. Default 10; 0 writes no lines.
  // TROUPE_FAILURE_LINES overrides it.
  unsigned failure_lines = 10;
  // True: a failure stops the program like stop(stop_mode::discard), so that run() throws at once,
  // even if a hold exists. Default false. TROUPE_STOP_ON_FAILURE (1 or 0) overrides it.
  bool stop_on_failure = false;

  // Called for each dead letter, on the thread that finds it. It must not throw. Default: dead
  // letters are only counted. It is not called for dead letters that it causes during the call, nor
  // for messages that are sent while the runtime is destroyed. If it sends a message that becomes a
  // dead letter later, it is called again: a function that always sends to an actor that ends
  // causes an endless sequence.
  std::function<void(const dead_letter&)> on_dead_letter{};

  // True: the runtime counts its messages by class and handler, and other processes of the same
  // user can look into it: a Unix socket of this process answers with the counts, the actors and
  // the events that they wait for (docs/guide/observing.md). Costs a few ns for each message, and
  // one thread, which does not keep the program alive. Default false. TROUPE_OBSERVE (1 or 0)
  // overrides it.
  bool observe = false;
  // Bytes of the flight recorder of each thread: a ring of its last turns (actor, handler, number
  // of messages), with the lines at which they wait, steals, mail from other threads, ends of I/O
  // and times. A crash writes the newest turns to standard error; `troupe dump` shows them, and
  // GDB, even in a core file (docs/guide/debugging.md). A turn takes 6 bytes, or 12 if it is slow;
  // pages are touched as they fill. At least 64 KiB, at most 16 MiB, else an option_error; the
  // first runtime of a process with the option decides for all. Default 0: none.
  // TROUPE_FLIGHT_RECORDER (a number of MiB, 0 to 16) overrides it.
  std::size_t flight_recorder_bytes = 0;
  // Called for each warning of an observed runtime: when its cause is first found, and when the
  // cause is found again, though not sooner than `warnings.again`. The observer's thread calls it;
  // the destructor of the runtime may make the last calls. It must not throw; it should return
  // soon, since the observer answers no other process meanwhile; and it must not make or destroy a
  // runtime. Default: none; each warning then writes a line to standard error (`warning_lines`).
  std::function<void(const warning&)> on_warning{};
  // When the runtime warns.
  warning_limits warnings{};
  // Maximum number of lines in one minute that warnings write to standard error if there is no
  // on_warning. Default 10; 0 writes no lines. TROUPE_WARNING_LINES overrides it.
  unsigned warning_lines = 10;
};

// The maximum number of messages that wait in an actor's mailbox. Not counted: the message that is
// being handled, messages of the runtime itself, and callbacks of the actor's own futures.
struct mailbox_limit {
  // 0 (default): no limit.
  std::size_t messages = 0;
  troupe::when_full when_full = troupe::when_full::suspend;
};

// A name for an actor: a copy of at most 63 bytes of a text. A longer text is cut, and control
// characters become spaces.
//
// Example:
//     troupe::actor_name desk = "cash desk " + std::to_string(4);
//     std::cout << desk.text() << '\n';
class actor_name {
 public:
  static constexpr std::size_t bytes_max = 63;
  constexpr actor_name() noexcept = default;  // none
  actor_name(std::string_view text) noexcept;
  template <class Text>
  requires std::is_convertible_v<const Text&, std::string_view> actor_name(const Text& text)
  noexcept : actor_name(std::string_view(text)) {}
  std::string_view text() const noexcept { return {text_, bytes_}; }

 private:
  // No std::string: in a co_await GCC 12 copies the bits of a temporary spawn_options, and also
  // destroys the copies.
  char text_[bytes_max]{};
  std::uint8_t bytes_ = 0;
};

// Options of one actor. Pass them to spawn() before the constructor's arguments, or to pinned() and
// on_main().
//
// Example:
//     struct Ledger { void book(int amount) { static_cast<void>(amount); } };
//     troupe::runtime rt;
//     auto ledger = rt.spawn<Ledger>({.on_error = troupe::error_policy::stop});
//     ledger.tell<&Ledger::book>(5);
//     rt.run();
struct spawn_options {
  // Default resume. `restart` copies the constructor's arguments; option_error if they cannot be
  // copied or if the class is reentrant.
  error_policy on_error = error_policy::resume;
  restart_limit restart{};
  // When the parent ends, this actor is stopped (stop_now). The option keeps the parent alive.
  // Default: no parent.
  any_ref parent{};
  // 0 messages (default): the runtime's limits.
  turn_limits turn{0, time_span()};
  // Default: no limit. A message to an actor with a limit costs about 20 ns more.
  mailbox_limit mailbox{};
  // A heap of the actor's own. this_context() returns it in the constructor, in the handlers (in
  // coroutines after a co_await as well) and in the destructor. It is freed when the actor ends or
  // is constructed again. Default: none. option_error with activate().
  std::optional<context_options> context{};
  // True: when a handler has ended, the memory that it allocated in that context is freed; for a
  // reentrant actor, once none of its calls is suspended. Memory that the constructor allocated
  // stays. An exception from a handler may refer to the handler's memory, which then stays until
  // run() has thrown another failure; an exception that answers an ask may not. Default false;
  // option_error without a context.
  bool rolls_back = false;
  // Dumps, stall reports and lists of actors show it beside the actor's class and id
  // (docs/guide/observing.md). Several actors may have the same. Default: none. Costs about 100 ns,
  // and the memory of the other options.
  actor_name name{};
};

// The one thread on which an actor lives, from pinned() or on_main(). Passed to spawn() before the
// constructor's arguments, it keeps the actor off the pool: the constructor, handlers and
// destructor run on that thread. The arguments therefore travel to it as in a message
// (runtime::spawn).
//
// Example:
//     struct Log { void line(std::string text) { std::cout << text << '\n'; } };
//     troupe::runtime rt;
//     auto log = rt.spawn<Log>(troupe::pinned("log"));
//     auto strict = rt.spawn<Log>(troupe::pinned("log", {.on_error = troupe::error_policy::stop}));
//     log.tell<&Log::line>("written on the thread named log");
//     strict.tell<&Log::line>("and so is this");
//     rt.run();
class on_thread {
 public:
  // The name of the pinned thread; empty for the main thread.
  const std::string& name() const noexcept { return name_; }
  const spawn_options& options() const noexcept { return options_; }

 private:
  friend on_thread pinned(std::string name, spawn_options options);
  friend on_thread on_main(spawn_options options);
  on_thread(std::string name, const spawn_options& options)
      : name_(std::move(name)), options_(options) {}
  std::string name_;
  spawn_options options_;
};

// A thread of its own for actors that must stay on one thread, such as those with a database handle
// or a device. The thread starts when it is first named; actors that name the same thread share it.
// At most 1000 threads for each runtime. The kernel shows the first 15 characters of the name.
// Throws option_error if the name is empty.
inline on_thread pinned(std::string name, spawn_options options) {
  if (name.empty())
    throw option_error("troupe: pinned: a thread needs a name; spawn() without it means the pool");
  return {std::move(name), options};
}
inline on_thread pinned(std::string name) { return pinned(std::move(name), spawn_options()); }

// The thread that calls run(), for actors that own a window or the terminal.
inline on_thread on_main(spawn_options options) { return {std::string(), options}; }
inline on_thread on_main() { return on_main(spawn_options()); }

// How stop() ends a program.
enum class stop_mode {
  // waiting messages, and those that they cause, are still handled; holds do not count
  drain,
  // Running handlers end; all messages become dead letters. Suspended turns stay suspended, and the
  // mail behind them stays. But if the operation that a turn awaits completes meanwhile, the turn
  // continues, and its next wait throws cancelled. A pinned actor that is not constructed yet is
  // never constructed, and a blocking call that has not begun never begins.
  discard,
};

}  // namespace troupe
