// options: every knob of a runtime, and of one actor.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>

#include "troupe/base/error.hpp"

namespace troupe {

// How the pool shares work. All keep the same promises.
enum class policy {
  work_stealing,  // a queue a worker; an idle worker takes from one that cannot cope
  shared_queue,   // one queue for all: the plain reference
  simulated,      // one thread inside run(), seeded choices, virtual time: replays by seed
};

// An exception that left a handler, a constructor of a pinned actor, or a posted procedure.
struct failure {
  std::exception_ptr what;
  std::string actor;   // the actor's class; empty for a posted procedure
  std::string method;  // the method or callable, "constructor", or "post"
};

// A message that nobody will handle.
struct dead_letter {
  std::string actor;   // the class of the actor it was sent to
  std::string method;  // the method or callable
};

// How much an actor may do in one turn before the next actor of its worker runs.
struct turn_limits {
  // Messages. Default 4096: less than its sender makes in a turn would let a mailbox grow. 1 is the fairest and
  // costs a queue operation a message. At least 1.
  unsigned messages = 4096;
  // Microseconds, looked at after 8 messages of a turn, after each one when handlers are slow, else so often
  // as the pace so far suggests. Default 100. A handler is never interrupted.
  std::chrono::microseconds time{100};
};

// Example:
//     troupe::runtime rt({.workers = 2, .on_error = [](const troupe::failure& f) { std::cerr << f.actor << '\n'; }});
//     rt.run();
struct runtime_options {
  // Threads of the pool. 0 (default): TROUPE_WORKERS if set, else one for each CPU that the process may
  // use (affinity and cgroup quota), 3 where that is unknown. At most 1024; more is an option_error.
  unsigned workers = 0;

  // Default work_stealing; the environment variable TROUPE_POLICY (the policy's name) overrides.
  troupe::policy policy = troupe::policy::work_stealing;

  // Of the simulated policy's choices, and of a thief's choice of victims. Default 1; TROUPE_SEED overrides.
  std::uint64_t seed = 1;

  // For actors that do not set their own.
  turn_limits turn{};

  // Called for each failure as it happens, on the thread where it happened, beside what run() throws.
  // It must not throw. Default: none.
  std::function<void(const failure&)> on_error{};

  // Called for each dead letter, on the thread that finds it. It must not throw. Default: they are counted only.
  // Not for those that it causes itself, nor for what is sent while the runtime is being destroyed.
  std::function<void(const dead_letter&)> on_dead_letter{};
};

// What an actor does when one of its handlers throws. The failure is recorded in either case.
enum class error_policy {
  resume,  // goes on with the next message; the default
  stop,    // is destroyed; the messages behind become dead letters
};

// Given to spawn() in front of the constructor's arguments.
//
// Example:
//     struct Log { void line(std::string text) { std::cout << text << '\n'; } };
//     troupe::runtime rt;
//     auto log = rt.spawn<Log>(troupe::pinned("log"));
//     log.tell<&Log::line>("written on the thread named log");
//     rt.run();
struct spawn_options {
  // Empty (default): the pool. Else the name of a pinned thread, which is started when first named; actors
  // that name the same thread share it. At most 1000 threads a runtime. The kernel shows the first 15 characters.
  std::string thread{};
  // True: the main thread, which is whoever calls run(). `thread` must be empty then.
  bool main = false;
  // Default resume.
  error_policy on_error = error_policy::resume;
  // Zero messages (default): the runtime's.
  turn_limits turn{0, std::chrono::microseconds{0}};
};

// A thread of its own for actors that must stay on one: a database handle, a device. The actor's
// constructor, handlers and destructor run there; so its arguments travel like a message's.
// Throws option_error when the name is empty.
inline spawn_options pinned(std::string thread) {
  if (thread.empty()) throw option_error("troupe: pinned: a thread needs a name; spawn() without it means the pool");
  return {.thread = std::move(thread), .main = false, .on_error = {}, .turn = {0, {}}};
}

// The thread that calls run(): for actors that own a window or the terminal.
inline spawn_options on_main() { return {.thread = {}, .main = true, .on_error = {}, .turn = {0, {}}}; }

// How stop() ends a program.
enum class stop_mode {
  drain,    // messages that are there, and those that they cause, are still handled; holds do not count
  // Handlers that run now end; all messages become dead letters. An actor with a thread of its own that has not
  // been constructed yet never will be.
  discard,
};

}  // namespace troupe
