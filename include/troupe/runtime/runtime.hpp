// runtime: a pool of workers, the actors on it, and the main thread's part in it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <stop_token>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/actor/blocking.hpp"
#include "troupe/actor/ref.hpp"
#include "troupe/actor/spawn.hpp"
#include "troupe/actor/spawn_task.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/runtime/metrics.hpp"
#include "troupe/runtime/options.hpp"
#include "troupe/runtime/timer.hpp"

namespace troupe {

// Keeps run() from returning while it exists: for an outside source of messages (a thread of your
// own, a device) that is not done yet. Movable; any thread. It may outlive the runtime.
//
// Example:
//     troupe::runtime rt;
//     struct Sink { int seen = 0; void put(int) { ++seen; } };
//     auto sink = rt.spawn<Sink>();
//     std::thread source([sink, open = rt.hold()] { for (int i = 0; i < 10; ++i)
//     sink.tell<&Sink::put>(i); }); rt.run();  // returns after the tenth source.join();
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

// The main thread as somewhere to call: whoever calls run(). What is sent is done in the order
// sent, in run(), run_once() and poll(). Copyable; any thread; it may outlive the runtime.
//
// Example:
//     troupe::runtime rt;
//     rt.main().post([] { std::cout << "on the main thread\n"; });
//     rt.run();
class main_thread {
 public:
  // Fire and forget. What it throws is a failure, which run() throws.
  template <class Procedure>
  void post(Procedure&& procedure) const {
    static_assert(!tasks::makes_task<Procedure>,
                  "troupe: main_thread::post: this is a coroutine, which nobody would run: "
                  "co_await call(), or let a procedure spawn it");
    actor_.tell([procedure = std::forward<Procedure>(procedure)](proxy&) mutable {
      static_cast<void>(procedure());
    });
  }
  // co_await it: the value, or what it throws, comes back to the caller.
  template <class Function>
  [[nodiscard]] auto call(Function&& function) const {
    return actor_.ask([function = std::forward<Function>(function)](
                          proxy&) mutable -> decltype(auto) { return function(); });
  }
  // For threads of your own: blocks until it was called. Throws usage_error, before anything is
  // sent, on the main thread itself, which would wait for itself, and in handlers and on the pool's
  // threads, where `co_await main().call(f)` is the right call.
  template <class Function>
  auto call_and_wait(Function&& function) const {
    check_may_wait();
    return call(std::forward<Function>(function)).get();
  }

 private:
  friend class runtime;
  struct proxy {};
  explicit main_thread(ref<proxy> actor) noexcept : actor_(std::move(actor)) {}
  void check_may_wait() const;
  ref<proxy> actor_;
};

// Of after() and every().
struct timer_options {
  // Ends it; what is running is not interrupted. Default: never.
  std::stop_token stop{};
  // True: the program may be out of work nevertheless. Default false.
  bool weak = false;
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

  // Discards what is left, waits for handlers that are running, destroys every actor. What those
  // handlers and the destructors spawn meanwhile is never constructed: the ref is of an actor that
  // has stopped. Not in a handler of its own, which it would wait for: that ends the program with a
  // message. Use stop() there.
  ~runtime();

  // Makes an actor of class T on the pool: it is constructed here and now, and what the constructor
  // throws is thrown here. Any thread. Cost: about 20 ns and 24 bytes + sizeof(T), rounded up to 8
  // (above 256 bytes to 64, above 4 KiB to 1024) and to alignof(T). Above 16 KiB it is a block of
  // malloc's, which takes microseconds. Throws std::bad_alloc; option_error for turn limits without
  // messages or with a negative time.
  template <class T, class... Args>
  requires(!actor::starts_with_v<spawn_options, Args...> &&
           !actor::starts_with_v<on_thread, Args...>) ref<T> spawn(Args&&... args) {
    return actor::spawn<T>(actor::placement{system()}, std::forward<Args>(args)...);
  }
  template <class T, class... Args>
  ref<T> spawn(const spawn_options& options, Args&&... args) {
    return actor::spawn<T>(placement_of(options), std::forward<Args>(args)...);
  }

  // Makes an actor of class T that lives on one thread, given by pinned() or on_main(), and is
  // constructed there later. So the arguments travel by value, a literal as a std::string, and what
  // could not be sent in a message is a compile error here too; troupe::unchecked lets it through.
  // They live until the constructor has returned, and a reference to one that it keeps dangles
  // then. What it throws is a failure, and the actor is stopped. Any thread; cost as above, and a
  // message. Throws, too: option_error for the 1001st pinned thread; std::system_error when the
  // thread cannot be started.
  template <class T, class... Args>
  ref<T> spawn(const on_thread& where, Args&&... args) {
    return actor::spawn_there<T>(placement_of(where), std::forward<Args>(args)...);
  }

  // Makes an actor of an object that nobody else holds, where it lies: on the pool, or where
  // `options` or pinned() and on_main() say. The actor destroys it, unless ref::consume takes it
  // back. Any thread. Cost: about 100 ns, and some ns more for each message than a spawned actor's.
  // Throws usage_error for none, option_error for error_policy::restart and as spawn,
  // std::bad_alloc; the object is gone then.
  //
  // Example:
  //     struct Log { std::vector<std::string> lines; void add(std::string line) {
  //     lines.push_back(std::move(line)); } }; troupe::task<> use(troupe::ref<Log> log) {
  //       log.tell<&Log::add>("one");
  //       std::unique_ptr<Log> back = co_await log.consume();
  //       std::cout << back->lines.size() << '\n';
  //     }
  //     int main() {
  //       troupe::runtime rt;
  //       rt.spawn(use(rt.activate(std::make_unique<Log>())));
  //       rt.run();
  //     }
  template <class T>
  ref<T> activate(std::unique_ptr<T> object) {
    return actor::activate_object(actor::placement{system()}, std::move(object));
  }
  template <class T>
  ref<T> activate(const spawn_options& options, std::unique_ptr<T> object) {
    return actor::activate_object(placement_of(options), std::move(object));
  }
  template <class T>
  ref<T> activate(const on_thread& where, std::unique_ptr<T> object) {
    return actor::activate_object(placement_of(where), std::move(object));
  }

  // Runs a task on the pool: from now on, without being awaited. Its result comes to the future;
  // when that was dropped, what the task throws is a failure as in a handler. Any thread. Throws
  // std::bad_alloc; what is out of memory later, before its first turn, has that as its result.
  // Cost: about 45 ns; about 200 bytes while it sleeps (sleep_for), 64 more while somebody has the
  // future. A lambda that captures must outlive the task that was made by calling it, `[x]() ->
  // task<> {…}()`, and one that is called where it is written does not: give spawn the lambda
  // itself, below.
  template <class T>
  future<T> spawn(task<T>&& running) {
    return actor::spawn_task(actor::placement{system()}, std::move(running));
  }
  // The same of what makes the task: a lambda that is a coroutine, a function, or a method with an
  // object, and its arguments. It is called in the task's first turn; what it throws is the task's.
  // The callable and the arguments are kept by value until the task has ended or is destroyed, and
  // are gone before its result comes. What could not be sent in a message may not be an argument; a
  // literal travels as a std::string. Cost: a frame more.
  //
  // GCC 12 destroys a lambda's captures twice that is written in the very expression of a co_await,
  // `co_await rt.spawn([text]() …)`: with that compiler name the lambda and move it in, name the
  // future, or give what it needs as arguments.
  //
  // Example:
  //     int main() {
  //       troupe::runtime rt;
  //       std::string name = "world";
  //       rt.spawn([name]() -> troupe::task<> {
  //         co_await troupe::yield();
  //         std::cout << "hello " << name << '\n';
  //       });
  //       rt.spawn([](std::string greeting, int times) -> troupe::task<> {
  //         for (int i = 0; i < times; ++i) std::cout << greeting << '\n';
  //         co_return;
  //       }, "good day", 2);
  //       rt.run();
  //     }
  template <int = 0, actor::may_make_task Maker, class... Args>
  auto spawn(Maker&& maker, Args&&... args) {
    return actor::spawn_made(actor::placement{system()}, std::forward<Maker>(maker),
                             std::forward<Args>(args)...);
  }
  template <class T>
  future<T> spawn(task<T>& running) {
    static_assert(!std::is_same_v<T, T>,
                  "troupe: spawn: a task is given away: spawn(std::move(the_task))");
    return spawn(std::move(running));
  }

  // Both with a context of its own, which this_context() gives in all parts of the task, also after
  // a co_await. It goes when the task has ended; so neither the value nor the exception may refer
  // to it. Throws option_error as make_context.
  //
  // Example:
  //     troupe::task<int> letters(std::string text) {
  //       std::pmr::vector<char> kept(&troupe::this_context());
  //       for (char one : text) {
  //         kept.push_back(one);
  //         co_await troupe::yield();
  //       }
  //       co_return static_cast<int>(kept.size());
  //     }
  //     int main() {
  //       troupe::runtime rt;
  //       rt.spawn(troupe::context_options{.name = "letters"}, letters("four")).then([](int n) {
  //       std::cout << n << '\n'; }); rt.run();
  //     }
  template <class T>
  future<T> spawn(const context_options& heap, task<T>&& running) {
    return actor::spawn_task(within<T>(heap), std::move(running));
  }
  template <int = 0, actor::may_make_task Maker, class... Args>
  auto spawn(const context_options& heap, Maker&& maker, Args&&... args) {
    return actor::spawn_made(within<actor::made_value<Maker, Args...>>(heap),
                             std::forward<Maker>(maker), std::forward<Args>(args)...);
  }
  TROUPE_REFUSE_REST(spawn, TROUPE_SPAWN_REFUSES);

  // Runs a naked procedure once on the pool. It must own what it captures. Any thread. Throws
  // std::bad_alloc.
  void post(std::move_only_function<void()> procedure);
  template <tasks::makes_task Procedure>
  void post(Procedure&&) {
    static_assert(
        !tasks::makes_task<Procedure>,
        "troupe: post: this is a coroutine, which nobody would run: give its task to spawn()");
  }
  TROUPE_REFUSE_REST(
      post,
      "troupe: post: it takes what can be called without arguments, and moved; a name that stands "
      "for several functions or for a template is given in a lambda, post([] { work(5); })");

  // Runs the main thread's actors until the program is out of work or stop() was called; then
  // throws the first failure that no run() has thrown yet, in the order in which they happened, as
  // it was thrown. May be called again. Throws usage_error when called from a handler or by two
  // threads at once.
  void run();

  // One round for a program that has a loop of its own (a GUI): runs what the main thread has to do
  // now, and waits for something if that is nothing; poll() never waits. Throws one failure, as
  // run() does. False when the program is out of work. By the thread that would call run().
  bool run_once();
  bool poll();

  main_thread main() const { return main_thread(main_); }

  // Calls the procedure on the pool after `span`, or every `period`, the first time after one.
  // Until then the program is not out of work, unless `weak`. A period is not stretched by how long
  // a call takes; calls do not overlap. What a call throws is a failure, and the next one comes
  // nevertheless. Ends by the timer's cancel(), or by the stop token. What is armed when the
  // runtime ends is never called. Lateness as sleep_for's. Any thread. Cost: about 100 ns.
  timer after(std::chrono::nanoseconds span, std::move_only_function<void()> procedure,
              timer_options options = {});
  timer every(std::chrono::nanoseconds period, std::move_only_function<void()> procedure,
              timer_options options = {});
  template <tasks::makes_task Procedure>
  timer after(std::chrono::nanoseconds, Procedure&&, timer_options = {}) {
    static_assert(!tasks::makes_task<Procedure>,
                  "troupe: after: this is a coroutine, which nobody would run: let the procedure "
                  "spawn its task");
    return {};
  }
  template <tasks::makes_task Procedure>
  timer every(std::chrono::nanoseconds, Procedure&&, timer_options = {}) {
    static_assert(!tasks::makes_task<Procedure>,
                  "troupe: every: this is a coroutine, which nobody would run: let the procedure "
                  "spawn its task");
    return {};
  }
  TROUPE_REFUSE_REST(
      after,
      "troupe: after: it takes a time with its unit, as std::chrono::milliseconds(100), and what "
      "can be called without arguments, and moved");
  TROUPE_REFUSE_REST(
      every,
      "troupe: every: it takes a time with its unit, as std::chrono::milliseconds(100), and what "
      "can be called without arguments, and moved");

  // As troupe::blocking, from any thread.
  template <class Function>
  [[nodiscard]] auto blocking(Function&& function) {
    return actor::call_aside(system(), std::forward<Function>(function));
  }

  // Makes run() return: out of the current call, or the next one if none is running. Any thread,
  // handlers too. When the deadline passes before the end is reached, run() throws deadline_error,
  // naming the handlers and blocking calls that still run. The stop lasts on until those have ended
  // and nothing of what was queued is left: until then holds do not count, and what is queued or
  // sent becomes dead letters. The next run() waits for that first.
  void stop(stop_mode mode = stop_mode::drain,
            std::chrono::nanoseconds deadline = std::chrono::seconds(10));

  // Keeps run() from returning while the guard exists.
  [[nodiscard]] troupe::hold hold();

  // The failures that no run() has thrown yet, oldest first; at most
  // runtime_options::failures_kept. Any thread, also while run() runs. Throws std::bad_alloc.
  std::vector<failure> errors() const;
  // The same, and they are kept no more: no run() throws them. So a program that is held open hears
  // of its failures.
  std::vector<failure> take_errors();
  // The failure that run() threw last, with its actor and method.
  failure thrown() const;
  void clear_errors();

  unsigned workers() const noexcept;

  // Counters and gauges of everything, for each worker and in sum. Any thread, handlers too. Cost:
  // some microseconds.
  runtime_metrics metrics() const;

  // What the program is doing and waiting for at this instant, in words: the handlers that run, and
  // a line for each suspended turn or task, as a stall has it, with actor, method, place in the
  // source and what it waits for; 1,000 lines at most, the rest is counted. What is just being
  // resumed is in neither list. Any thread, handlers too, and while all workers are stuck. Nobody
  // waits for it longer than for an instant, and a program that is not dumped pays nothing. Cost:
  // about 1 us for each suspended turn. See runtime_options::dump_on_sigquit.
  //
  // Example:
  //     troupe::task<> admission_ticket(troupe::event door) { co_await door.wait(); }
  //     int main() {
  //       troupe::runtime rt;
  //       troupe::event door;
  //       rt.spawn(admission_ticket(door));
  //       rt.after(std::chrono::milliseconds(2), [&rt, door] {
  //         rt.dump(std::cerr);
  //         door.set();
  //       });
  //       rt.run();
  //     }
  std::string dump() const;
  void dump(std::ostream& to) const;

  // Time since the runtime was made; virtual under the simulated policy.
  std::chrono::nanoseconds now() const;
  // Of the simulated policy: what a failing test prints to be run again.
  std::uint64_t seed() const noexcept;

 private:
  actor::actor_system& system() const noexcept;
  // Of a task with a context of its own.
  template <class T>
  actor::placement within(const context_options& heap) const {
    static_assert(std::is_void_v<T> || is_sendable<T>::value,
                  "troupe: spawn: the task's value may refer to its context, which goes before the "
                  "value; promote it");
    actor::placement where{system()};
    where.has_options = true;
    where.context = &heap;
    return where;
  }
  actor::placement placement_of(const spawn_options& options) const;
  actor::placement placement_of(const on_thread& where);
  std::shared_ptr<class runtime_core> core_;
  ref<main_thread::proxy> main_;
};

}  // namespace troupe
