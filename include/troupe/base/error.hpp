// error: the exceptions that the library throws at its user's face.
//
// Each is typed and its text says what the caller can do. A handler's own exception is never
// wrapped: run() throws it as it was thrown.
#pragma once

#include <stdexcept>
#include <string>

namespace troupe {

// Base of all the exceptions that the library itself throws.
//
// Example:
//     try { troupe::runtime rt({.workers = 100'000}); }
//     catch (const troupe::error& e) { std::cerr << e.what() << '\n'; }
class error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An option or an environment variable has a value that makes no sense. Nothing was started.
class option_error : public error {
  using error::error;
};

// A call that this thread, or this moment, does not allow (run() inside a handler, say). Nothing
// was changed.
class usage_error : public error {
  using error::error;
};

// stop() ran into its deadline: the text names the handlers that were still running, and blocking
// calls.
class deadline_error : public error {
  using error::error;
};

// A promise was dropped before it had a value.
class broken_promise : public error {
  using error::error;
};

// What was awaited did not come in time. It may still come about; its result is dropped.
class timed_out : public error {
  using error::error;
};

// What was awaited is awaited no more: a stop was requested, or the actor that awaited it is
// stopped.
class cancelled : public error {
  using error::error;
};

// An ask reached an actor that has stopped, or that stopped before it answered.
class actor_stopped : public error {
  using error::error;
};

// A message to an actor whose mailbox is full. It was not sent.
class mailbox_full : public error {
  using error::error;
};

// An ask, or a lazy, that would wait for itself: the text names who wants whom.
class deadlock : public error {
  using error::error;
};

// Something shared is written without its guard: a context by two threads at once, what a guard
// holds without its lock.
class unguarded_error : public error {
  using error::error;
};

// A pointer into a context is about to be stored where it would outlive the memory: the text names
// both sides. Persist or promote what it points to.
class foreign_context_error : public error {
  using error::error;
};

// The program is out of work while turns or tasks are still suspended: the text has a line for
// each, with what it waits for. Nothing in the program will resolve that any more; a thread of your
// own that will needs a hold.
class stalled : public error {
  using error::error;
};

}  // namespace troupe
