// options: every knob of a runtime, and of one actor.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "troupe/actor/supervision.hpp"
#include "troupe/actor/when_full.hpp"
#include "troupe/base/error.hpp"
#include "troupe/context/context.hpp"
#include "troupe/io/backend.hpp"

namespace troupe {

// How the pool shares work. All keep the same promises.
enum class policy {
  work_stealing,  // a queue a worker; an idle worker takes from one that cannot cope
  shared_queue,   // one queue for all: the plain reference
  simulated,      // one thread inside run(), seeded choices, virtual time: replays by seed
};

// An exception that left a handler, a constructor of a pinned actor, or a posted procedure.
struct failure {
  failure() = default;
  failure(const failure&) = default;
  failure(failure&&) noexcept = default;
  // By exchange, so that what this one was goes in the right order: the exception before its
  // memory.
  failure& operator=(failure other) noexcept {
    memory.swap(other.memory);
    std::swap(what, other.what);
    actor.swap(other.actor);
    method.swap(other.method);
    std::swap(actor_id, other.actor_id);
    return *this;
  }

  // the context that the exception may refer to; held for as long as this is
  std::shared_ptr<const void> memory;
  std::exception_ptr what;
  std::string actor;           // the actor's class; empty for a posted procedure
  std::string method;          // the method or callable, "constructor", "post", or "lazy"
  std::uint64_t actor_id = 0;  // ref::id() of the actor; 0 for a posted procedure
};

// A message that nobody will handle.
struct dead_letter {
  std::string actor;  // the class of the actor it was sent to
  // the method or callable; "constructor" for an actor with a thread of its own that never came to
  // be
  std::string method;
  std::uint64_t actor_id = 0;  // its ref::id()
};

// How much an actor may do in one turn before the next actor of its worker runs.
struct turn_limits {
  // Messages. Default 4096: less than its sender makes in a turn would let a mailbox grow. 1 is the
  // fairest and costs a queue operation a message. At least 1.
  unsigned messages = 4096;
  // Microseconds, looked at after nine messages of a turn, after each one when the actor's handlers
  // are slow, else so often as the pace so far suggests. Default 100; the longest there is means no
  // limit. A handler is never interrupted.
  std::chrono::microseconds time{100};
};

// Example:
//     troupe::runtime rt({.workers = 2, .on_error = [](const troupe::failure& f) { std::cerr <<
//     f.actor << '\n'; }}); rt.run();
struct runtime_options {
  // Threads of the pool. 0 (default): TROUPE_WORKERS if set, else one for each CPU that the process
  // may use (affinity and cgroup quota), 3 where that is unknown. At most 1024; more is an
  // option_error.
  unsigned workers = 0;

  // Default work_stealing; the environment variable TROUPE_POLICY (the policy's name) overrides.
  troupe::policy policy = troupe::policy::work_stealing;

  // Of the simulated policy's choices, and of a thief's choice of victims. Default 1; TROUPE_SEED
  // overrides.
  std::uint64_t seed = 1;

  // Threads for calls that block (blocking()): at most so many, each started when it is first
  // needed. Default 16; at least 1, at most 1024; else an option_error. More calls than that wait
  // for each other.
  unsigned blocking_threads = 16;

  // Lazies that one thread may have queued. Default 10,000; what comes past it runs in the thread
  // that wants it, so that what is queued stays bounded.
  std::size_t queued_lazies = 10'000;
  // Bytes that resources may take (resource.hpp) before lazies that make more of them are left to
  // those who want them. A soft limit: what is wanted runs. Default 0: no limit, and workers run
  // ahead as far as lazies are queued.
  std::size_t resource_bytes = 0;
  // True: every lazy and every fork runs in the thread that wants it, when it is wanted, for
  // debugging; in a handler that holds the worker until it is done. Default false.
  bool serial_lazies = false;
  // False: no thread takes lazies, or parts of forks, from another one that is at work on its own;
  // so what one get() or co_await wants runs in one thread at a time, in the order of a plain
  // program, though not always in the same thread. For debugging, and to see what sharing gains.
  // Default true.
  bool steal_lazies = true;

  // True: SIGQUIT (Ctrl-\ on a terminal) writes runtime::dump() to stderr and does not end the
  // program. It has a thread of its own that sleeps until then. The signal means what it did before
  // once the last runtime with this option has gone. Default false.
  bool dump_on_sigquit = false;

  // What carries out I/O. Default automatic: epoll, the quicker one for servers
  // (docs/decisions/io_rings.md); `simulated` under policy::simulated, and only there. The
  // environment variable TROUPE_IO (auto, io_uring, epoll) overrides. Where io_uring is wanted and
  // not to be had, epoll takes over, and says so once on standard error.
  io_backend io = io_backend::automatic;

  // For actors that do not set their own.
  turn_limits turn{};

  // Called for each failure as it happens, on the thread where it happened, beside what run()
  // throws. It must not throw. Default: none, and each failure is a line on standard error instead
  // (`failure_lines`).
  std::function<void(const failure&)> on_error{};

  // Failures that are kept for run() to throw, and for errors() and take_errors(), at most. The
  // first ones, up to half of the limit, and the newest ones stay; those between them are dropped,
  // and counted in metrics().failures_dropped. Default 1,000; at least 1, else an option_error. The
  // environment variable TROUPE_FAILURES_KEPT overrides.
  std::size_t failures_kept = 1'000;
  // Bytes that these may take at most, with the contexts that their exceptions refer to. The very
  // first failure is kept whatever it takes. Default 4 MiB; TROUPE_FAILURE_BYTES overrides.
  std::size_t failure_bytes = std::size_t{4} << 20;
  // Lines that failures may write to standard error in one second while there is no on_error; those
  // that are left out are counted in one more line. A failure is never held up by a standard error
  // that nobody reads: its line is left out. Default 10; 0 writes none. TROUPE_FAILURE_LINES
  // overrides.
  unsigned failure_lines = 10;
  // True: a failure stops the program as stop(stop_mode::discard) does, so that run() throws at
  // once, although somebody holds the program open. Default false; TROUPE_STOP_ON_FAILURE (1 or 0)
  // overrides.
  bool stop_on_failure = false;

  // Called for each dead letter, on the thread that finds it. It must not throw. Default: they are
  // counted only. Not for those that it causes itself at once, nor for what is sent while the
  // runtime is being destroyed. What it sends and turns out to be a dead letter later is one more:
  // one that always sends to an actor that has ended never comes to an end.
  std::function<void(const dead_letter&)> on_dead_letter{};
};

// How many messages may wait in an actor's mailbox. The one that is being handled does not count,
// nor do the messages of the runtime itself and what the actor's own futures call back.
struct mailbox_limit {
  // Zero (default): no limit.
  std::size_t messages = 0;
  troupe::when_full when_full = troupe::when_full::suspend;
};

// Of one actor. Given to spawn() in front of the constructor's arguments, or to pinned() and
// on_main().
//
// Example:
//     struct Ledger { void book(int amount) { static_cast<void>(amount); } };
//     troupe::runtime rt;
//     auto ledger = rt.spawn<Ledger>({.on_error = troupe::error_policy::stop});
//     ledger.tell<&Ledger::book>(5);
//     rt.run();
struct spawn_options {
  // Default resume. `restart` copies the constructor's arguments: option_error when they cannot be
  // copied, or when the class is reentrant.
  error_policy on_error = error_policy::resume;
  restart_limit restart{};
  // When the parent ends, this one is stopped (stop_now). It keeps the parent alive. Default: none.
  any_ref parent{};
  // Zero messages (default): the runtime's.
  turn_limits turn{0, std::chrono::microseconds{0}};
  // Default: no limit. Sending to an actor with a limit costs about 20 ns more.
  mailbox_limit mailbox{};
  // A heap of its own: this_context() gives it in the constructor, in the handlers (coroutines,
  // too, also after a co_await) and in the destructor. It goes with the actor, and when that is
  // constructed anew. Default: none. option_error with activate().
  std::optional<context_options> context{};
  // True: what a handler has allocated in that context is discarded when it has ended; of a
  // reentrant actor, once none of its calls is suspended. What the constructor allocated stays.
  // What the handler throws may refer to its memory, which stays until run() has thrown another
  // failure; the exception of an answer may not. Default false; option_error without a context.
  bool rolls_back = false;
};

// The one thread on which an actor lives, from pinned() or on_main(). Given to spawn() in front of
// the constructor's arguments, it keeps the actor off the pool: constructor, handlers and
// destructor run on that thread. So the arguments travel there as a message's do (runtime::spawn).
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
  // The pinned thread's name; empty for the main thread.
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

// A thread of its own for actors that must stay on one: a database handle, a device. It is started
// when first named; actors that name the same thread share it. At most 1000 threads a runtime. The
// kernel shows the first 15 characters. Throws option_error when the name is empty.
inline on_thread pinned(std::string name, spawn_options options = {}) {
  if (name.empty())
    throw option_error("troupe: pinned: a thread needs a name; spawn() without it means the pool");
  return {std::move(name), options};
}

// The thread that calls run(): for actors that own a window or the terminal.
inline on_thread on_main(spawn_options options = {}) { return {std::string(), options}; }

// How stop() ends a program.
enum class stop_mode {
  // messages that are there, and those that they cause, are still handled; holds do not count
  drain,
  // Handlers that run now end; all messages become dead letters. What is suspended stays so, as
  // does the mail behind it, but
  // for what comes to its end meanwhile: that goes on, and what it awaits next throws cancelled. An
  // actor with a thread of
  // its own that has not been constructed yet never will be.
  discard,
};

}  // namespace troupe
