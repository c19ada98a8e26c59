// error: the exceptions that the library throws to its users.
//
// Each has a type of its own, and its text says what the caller can do. An exception from a handler
// is never wrapped: run() throws the same object.
#pragma once

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>

namespace troupe {

// The base of all exceptions that the library itself throws.
//
// Example:
//     try { troupe::runtime rt({.workers = 100'000}); }
//     catch (const troupe::error& e) { std::cerr << e.what() << '\n'; }
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  // After how long the same call may succeed, since what it needs is full or away for now. Empty if
  // waiting alone changes nothing, which is the default. What was asked may have been done all the
  // same where the error's own members say so.
  virtual std::optional<std::chrono::nanoseconds> try_again_in() const noexcept { return {}; }
};

// An option or an environment variable has a value that makes no sense. Nothing was started.
class option_error : public error {
  using error::error;
};

// A call that is not allowed on this thread or at this moment (for instance run() inside a
// handler). Nothing was changed.
class usage_error : public error {
  using error::error;
};

// stop() reached its deadline. The text names the handlers and blocking calls that were still
// running.
class deadline_error : public error {
  using error::error;
};

// A promise was dropped before it had a result.
class broken_promise : public error {
  using error::error;
};

// The awaited result did not arrive in time. If it arrives later, it is dropped.
class timed_out : public error {
 public:
  using error::error;
  std::optional<std::chrono::nanoseconds> try_again_in() const noexcept override {
    return std::chrono::seconds(1);
  }
};

// A wait was ended: a stop was requested, or the actor that awaited was stopped.
class cancelled : public error {
  using error::error;
};

// An ask reached an actor that had stopped, or that stopped before it answered.
class actor_stopped : public error {
  using error::error;
};

// A message to an actor with a full mailbox. It was not sent.
class mailbox_full : public error {
 public:
  using error::error;
  std::optional<std::chrono::nanoseconds> try_again_in() const noexcept override {
    return std::chrono::seconds(1);
  }
};

// A channel was closed before a value could be sent. The value is still the sender's.
class channel_closed : public error {
  using error::error;
};

// An ask or a lazy would wait for itself. The text names the cycle of waits.
class deadlock : public error {
  using error::error;
};

// Shared data was written without its guard: a context by two threads at once, or the value of a
// guarded without its lock.
class unguarded_error : public error {
  using error::error;
};

// A pointer into a context would be stored where it outlives the context's memory. The text names
// both sides. Persist or promote the object instead.
class foreign_context_error : public error {
  using error::error;
};

// The program is out of work while turns or tasks are suspended. The text has a line for each of
// them, with what it waits for. Nothing inside the program will resume them; if a thread of your
// own will, it needs a hold.
class stalled : public error {
  using error::error;
};

}  // namespace troupe
