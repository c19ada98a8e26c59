// runtime: a pool of workers, the actors on it, and the main thread's part in it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/actor/ref.hpp"
#include "troupe/actor/spawn.hpp"
#include "troupe/runtime/options.hpp"

namespace troupe {

// Keeps run() from returning while it exists: for an outside source of messages (a thread of your own, a
// device) that is not done yet. Movable; any thread. It may outlive the runtime.
//
// Example:
//     troupe::runtime rt;
//     struct Sink { int seen = 0; void put(int) { ++seen; } };
//     auto sink = rt.spawn<Sink>();
//     std::thread source([sink, open = rt.hold()] { for (int i = 0; i < 10; ++i) sink.tell<&Sink::put>(i); });
//     rt.run();  // returns after the tenth
//     source.join();
class hold {
 public:
  hold() = default;
  hold(hold&&) noexcept = default;
  hold& operator=(hold&& other) noexcept;
  ~hold();
  void release() noexcept;

 private:
  friend class runtime;
  explicit hold(std::shared_ptr<class runtime_core> core) noexcept : core_(std::move(core)) {}
  std::shared_ptr<class runtime_core> core_;
};

// What a runtime did so far; sums over its workers, exact when it is at rest.
struct runtime_counters {
  std::uint64_t turns = 0;         // of actors and posted procedures on the pool
  std::uint64_t steals = 0;        // times that a worker took work from another one
  std::uint64_t stolen = 0;        // actors and procedures moved by that
  std::uint64_t wakes = 0;         // times that a sleeping worker was woken
  std::uint64_t dead_letters = 0;  // messages that nobody handled
};

// Example:
//     struct Greeter { void greet(std::string name) { std::cout << "hello " << name << '\n'; } };
//     troupe::runtime rt;
//     rt.spawn<Greeter>().tell<&Greeter::greet>("world");
//     rt.run();  // returns when out of work
class runtime {
 public:
  // Starts the pool; its workers run what they are given at once, whether or not run() was called.
  // Throws option_error, or std::system_error when a thread cannot be started.
  explicit runtime(runtime_options options = {});

  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  // Discards what is left, waits for handlers that are running, destroys every actor.
  ~runtime();

  // Makes an actor of class T. On the pool it is constructed here and now, and what the constructor throws
  // is thrown here. With pinned() or on_main() it is constructed on its own thread, from copies of the
  // arguments that live until its constructor has returned: it must not keep references to them. What it
  // throws then is a failure, and the actor is stopped. Any thread.
  // Cost: about 20 ns and 24 bytes + sizeof(T), rounded up to 8; a class above 4 KiB, or aligned to more than 8
  // bytes, takes 64 KiB at least. Throws std::bad_alloc, option_error.
  template <class T, class... Args>
    requires(!actor::starts_with_v<spawn_options, Args...>)
  ref<T> spawn(Args&&... args) {
    return actor::spawn<T>(actor::placement{system()}, std::forward<Args>(args)...);
  }
  template <class T, class... Args>
  ref<T> spawn(spawn_options options, Args&&... args) {
    return actor::spawn<T>(place(options), std::forward<Args>(args)...);
  }

  // Runs a naked procedure once on the pool. It must own what it captures. Any thread.
  void post(std::move_only_function<void()> procedure);

  // Runs the main thread's actors until the program is out of work or stop() was called; then throws the
  // first failure that no run() has thrown yet, in the order in which they happened, as it was thrown.
  // May be called again. Throws usage_error when called from a handler or by two threads at once.
  void run();

  // Makes run() return: out of the current call, or the next one if none is running. Any thread, handlers too.
  // When the deadline passes before the end is reached, run() throws deadline_error, naming the handlers that
  // still run; what is queued is discarded then. Sends of outside threads that come later stay for the next run().
  void stop(stop_mode mode = stop_mode::drain, std::chrono::nanoseconds deadline = std::chrono::seconds(10));

  // Keeps run() from returning while the guard exists.
  [[nodiscard]] troupe::hold hold();

  // The failures that no run() has thrown yet, oldest first. Any thread.
  std::vector<failure> errors() const;
  // The failure that run() threw last, with its actor and method.
  failure thrown() const;
  void clear_errors();

  unsigned workers() const noexcept;
  runtime_counters counters() const;

  // Time since the runtime was made; virtual under the simulated policy.
  std::chrono::nanoseconds now() const;
  // Of the simulated policy: what a failing test prints to be run again.
  std::uint64_t seed() const noexcept;

 private:
  actor::system& system() const noexcept;
  actor::placement place(const spawn_options& options);
  std::shared_ptr<class runtime_core> core_;
};

}  // namespace troupe
