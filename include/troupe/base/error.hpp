// error: the exceptions that the library throws to its users.
//
// Each has a type of its own, and its text names the caller's remedy. An exception from a handler
// is never wrapped: run() throws the same object.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace troupe {

// The three facts about an error by which a program reacts: whose fault it is, whether the request
// ran, and whether a retry helps. Retries, circuit breakers, proxies and answers of servers decide
// by this, and by nothing else (docs/protocols/verdicts.md).
struct verdict {
  enum class party : std::uint8_t {
    caller,    // gave an invalid argument, or gave up
    peer,      // the other end of this connection broke a rule, or disconnected
    upstream,  // a service that was asked failed, or cannot be reached
    us,        // this program: a mistake in it, or a limit of it that is reached
  };
  enum class effect : std::uint8_t { none, done, unknown };
  enum class again : std::uint8_t { never, later, now };
  party fault = party::us;
  effect ran = effect::unknown;
  again retry = again::never;
  friend bool operator==(const verdict&, const verdict&) = default;
};

// The base of all exceptions that the library itself throws.
//
// Example:
//     try { troupe::runtime rt({.workers = 100'000}); }
//     catch (const troupe::error& e) { std::cerr << e.what() << '\n'; }
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  // Each component decides it for its errors in one place. An error of your own counts as a mistake
  // of this program, unless you override this.
  virtual verdict judged() const noexcept { return {}; }
  // After how long the same call may succeed: zero for verdict::again::now, a second for later.
  // Empty for never: waiting alone changes nothing. The request may still have taken effect: see
  // judged().ran.
  virtual std::optional<std::chrono::nanoseconds> try_again_in() const noexcept {
    switch (judged().retry) {
      case verdict::again::now:
        return std::chrono::nanoseconds(0);
      case verdict::again::later:
        return std::chrono::seconds(1);
      default:
        return std::nullopt;
    }
  }
};

// An option or an environment variable has a value that makes no sense. Nothing was started.
class option_error : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::caller, verdict::effect::none, verdict::again::never};
  }
};

// A call that is not allowed on this thread or at this moment (for instance run() inside a
// handler). Nothing was changed.
class usage_error : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::caller, verdict::effect::none, verdict::again::never};
  }
};

// stop() reached its deadline. The text names the handlers and blocking calls that were still
// running.
class deadline_error : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::us, verdict::effect::unknown, verdict::again::never};
  }
};

// A promise was dropped before it had a result.
class broken_promise : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::us, verdict::effect::unknown, verdict::again::never};
  }
};

// The awaited result did not arrive in time. If it arrives later, it is dropped.
class timed_out : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::upstream, verdict::effect::unknown, verdict::again::later};
  }
};

// A wait was ended: a stop was requested, or the actor that awaited was stopped.
class cancelled : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::caller, verdict::effect::unknown, verdict::again::never};
  }
};

// An ask reached an actor that had stopped, or that stopped before it answered.
class actor_stopped : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::us, verdict::effect::unknown, verdict::again::never};
  }
};

// A message to an actor with a full mailbox. It was not sent.
class mailbox_full : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::us, verdict::effect::none, verdict::again::later};
  }
};

// A channel was closed before a value could be sent. The value is still the sender's.
class channel_closed : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::caller, verdict::effect::none, verdict::again::never};
  }
};

// An ask or a lazy would wait for itself. The text names the cycle of waits.
class deadlock : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::us, verdict::effect::none, verdict::again::never};
  }
};

// Shared data was written without its guard: a context by two threads at once, or the value of a
// guarded without its lock.
class unguarded_error : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::us, verdict::effect::unknown, verdict::again::never};
  }
};

// A pointer into a context would be stored where it outlives the context's memory. The text names
// both sides. Persist or promote the object instead.
class foreign_context_error : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::us, verdict::effect::none, verdict::again::never};
  }
};

// The program is out of work while turns or tasks are suspended. The text has a line for each of
// them, with the event for which it waits. Nothing inside the program will resume them; if a thread
// of your own will, it needs a hold.
class stalled : public error {
 public:
  using error::error;
  verdict judged() const noexcept override {
    return {verdict::party::us, verdict::effect::unknown, verdict::again::never};
  }
};

}  // namespace troupe
