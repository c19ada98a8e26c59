// runtime: a pool of workers, the actors on it, and the main thread's part in running them.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
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
#include "troupe/base/time_span.hpp"
#include "troupe/base/unique_function.hpp"
#include "troupe/runtime/attachment.hpp"
#include "troupe/runtime/metrics.hpp"
#include "troupe/runtime/options.hpp"
#include "troupe/runtime/tell_timers.hpp"
#include "troupe/runtime/timer.hpp"

namespace troupe {

class runtime;
namespace observing {
class component_list;
std::shared_ptr<component_list> components_of(const runtime& runtime);
}  // namespace observing

// Keeps run() from returning while it exists. For an outside source of messages (a thread of yours,
// a device) that has not finished. Movable. Thread: any. Lifetime: it may outlive the runtime.
//
// Example:
//     troupe::runtime rt;
//     struct Sink {
//       int seen = 0;
//       void put(int) { ++seen; }
//     };
//     auto sink = rt.spawn<Sink>();
//     std::thread source([sink, open = rt.hold()] {
//       for (int i = 0; i < 10; ++i) sink.tell<&Sink::put>(i);
//     });
//     rt.run();  // returns after the tenth
//     source.join();
class hold {
 public:
  hold() = default;
  hold(hold&&) noexcept = default;
  hold& operator=(hold&& other) noexcept;
  ~hold();
  // Ends the hold now. Thread: any.
  void release() noexcept;

 private:
  friend class runtime;
  friend hold detail::hold_here(const char* caller);
  explicit hold(std::shared_ptr<class runtime_core> core) noexcept : core_(std::move(core)) {}
  std::shared_ptr<class runtime_core> core_;
};

// Runs procedures on the main thread, which is the thread that calls run(). They run in the order
// in which they were sent, in run(), run_once() and poll(). Copyable. Thread: any. Lifetime: it may
// outlive the runtime.
//
// Example:
//     troupe::runtime rt;
//     rt.main().post([] { std::cout << "on the main thread\n"; });
//     rt.run();
class main_thread {
 public:
  // Sends a procedure and returns at once. An exception from it is a failure, which run() throws.
  template <class Procedure>
  void post(Procedure&& procedure) const {
    static_assert(!tasks::makes_task<Procedure>,
                  "troupe: main_thread::post: this is a coroutine, which would never run: "
                  "co_await call(), or let a procedure spawn it");
    actor_.tell([procedure = std::forward<Procedure>(procedure)](proxy&) mutable {
      static_cast<void>(procedure());
    });
  }
  // Sends a function and returns a future: co_await it for the function's value or exception.
  template <class Function>
  [[nodiscard]] auto call(Function&& function) const {
    return actor_.ask([function = std::forward<Function>(function)](
                          proxy&) mutable -> decltype(auto) { return function(); });
  }
  // Returns a callable that does call() with its arguments, which are copied or moved into it: for
  // code that does not depend on the main thread, such as a library's callback, a lazy or a
  // blocking call. It may be called on any thread, and returns the future at once.
  //
  //     auto show = rt.main().bind([&window](std::string text) { window.show(text); });
  //     troupe::submit(rt, [show] { show("done").then([] {}); });
  template <class Function>
  [[nodiscard]] auto bind(Function&& function) const {
    return [home = *this, function = std::forward<Function>(function)](auto&&... given) {
      return home.call(
          [function, ... given = std::forward<decltype(given)>(given)]() mutable -> decltype(auto) {
            return std::invoke(function, std::move(given)...);
          });
    };
  }
  // The same for threads of your own: blocks until the function has returned. Throws usage_error,
  // and sends nothing, on the main thread, which would wait for itself, and in handlers and on
  // threads of the pool: use `co_await main().call(f)` there.
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

// A pool of worker threads with the actors, tasks and timers that run on it. run() is the main
// thread's part: it runs the main thread's actors, and returns when the program is out of work. Not
// copyable. Thread: any, unless a function says otherwise. A process may have several runtimes.
// Lifetime: refs, futures, timers and holds may outlive the runtime.
//
// Example:
//     struct Greeter { void greet(std::string name) { std::cout << "hello " << name << '\n'; } };
//     troupe::runtime rt;
//     rt.spawn<Greeter>().tell<&Greeter::greet>("world");
//     rt.run();  // returns when out of work
class runtime {
 public:
  // Starts the pool. The workers run actors and tasks at once, whether or not run() was called.
  // Throws option_error, or std::system_error if a thread cannot be started.
  explicit runtime(runtime_options options);
  runtime() : runtime(runtime_options()) {}

  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  // Discards all waiting messages, waits for the running handlers, and destroys all actors. An
  // actor that those handlers or the destructors spawn meanwhile is never constructed: its ref
  // refers to a stopped actor. Do not destroy a runtime in one of its own handlers: the destructor
  // cannot wait for that handler, and ends the program with a message. Use stop() there.
  ~runtime();

  // Creates an actor of class T on the pool. The constructor runs on the calling thread before
  // spawn() returns, and an exception from it is thrown here. Thread: any. Cost: about 20 ns.
  // Memory: 24 bytes + sizeof(T), rounded up to a multiple of alignof(T) and of 8 bytes (above 256
  // bytes: of 64; above 4 KiB: of 1024). An actor above 16 KiB is a block from malloc, which takes
  // microseconds. Throws std::bad_alloc; option_error for a turn limit of 0 messages or of a
  // negative time.
  template <class T, class... Args>
  requires(!actor::starts_with_v<spawn_options, Args...> &&
           !actor::starts_with_v<on_thread, Args...>) ref<T> spawn(Args&&... args) {
    return actor::spawn<T>(actor::placement{system()}, std::forward<Args>(args)...);
  }
  template <class T, class... Args>
  ref<T> spawn(const spawn_options& options, Args&&... args) {
    return actor::spawn<T>(placement_of(options), std::forward<Args>(args)...);
  }

  // Creates an actor of class T that lives on one thread, given by pinned() or on_main(). The
  // constructor runs later, on that thread. The arguments therefore travel by value, a literal as a
  // std::string, and an argument that no message may hold is a compile error here too;
  // troupe::unchecked lets it pass.
  //
  // Thread: any. Cost: as above, and one message. Errors: an exception from the constructor is a
  // failure, and the actor is stopped; option_error for the 1001st pinned thread; std::system_error
  // if the thread cannot be started. Lifetime: the arguments live until the constructor has
  // returned: the actor must not keep a reference to an argument.
  template <class T, class... Args>
  ref<T> spawn(const on_thread& where, Args&&... args) {
    return actor::spawn_there<T>(placement_of(where), std::forward<Args>(args)...);
  }

  // Turns an object to which no other code refers into an actor, without moving the object. The
  // actor runs on the pool, or on the thread that `options`, pinned() or on_main() choose. Thread:
  // any. Cost: about 100 ns, and some ns more for each message than for a spawned actor. Errors:
  // usage_error if the pointer is null, option_error for error_policy::restart and as spawn(),
  // std::bad_alloc; the object is then destroyed. Lifetime: the actor destroys the object, unless
  // ref::consume takes it back.
  //
  // Example:
  //     struct Log {
  //       std::vector<std::string> lines;
  //       void add(std::string line) { lines.push_back(std::move(line)); }
  //     };
  //     troupe::task<> use(troupe::ref<Log> log) {
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

  // Runs a task on the pool, from now on and without being awaited. Its result goes to the future.
  // If the future was dropped, an exception from the task is a failure, as from a handler.
  //
  // Thread: any. Cost: about 45 ns; about 200 bytes while the task sleeps (sleep_for), and 64 more
  // while the future exists. Errors: throws std::bad_alloc; if memory runs out later, before the
  // task's first turn, std::bad_alloc is the task's result. Lifetime: a lambda with captures must
  // outlive the task that its call made. A lambda that is called where it is written, `[x]() ->
  // task<> {…}()`, does not: pass the lambda itself to the next overload.
  template <class T>
  future<T> spawn(task<T>&& running) {
    return actor::spawn_task(actor::placement{system()}, std::move(running));
  }
  // The same for a callable that makes the task, with its arguments: a lambda that is a coroutine,
  // a function, or a method with an object. It is called in the task's first turn, and an exception
  // from the call is the task's. Argument types are those that a message may hold; a literal
  // travels as a std::string. Cost: one more frame. Lifetime: the callable and the arguments are
  // kept by value until the task has ended or is destroyed, and are destroyed before the result is
  // given.
  //
  // GCC 12 destroys the captures of a lambda twice if the lambda is written inside a co_await
  // expression, `co_await rt.spawn([text]() …)`. With that compiler, name the lambda and move it
  // in, name the future, or pass the captured values as arguments.
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

  // Both overloads with a context of the task's own. this_context() returns it in all parts of the
  // task, after a co_await as well. Errors: option_error as make_context. Lifetime: the context
  // ends with the task: neither the value nor the exception may refer to it.
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
  //         std::cout << n << '\n';
  //       });
  //       rt.run();
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

  // Runs a naked procedure once on the pool. Thread: any. Errors: throws std::bad_alloc; an
  // exception from the procedure is a failure. Lifetime: the procedure must own its captures.
  void post(unique_function<void()> procedure);
  template <tasks::makes_task Procedure>
  void post(Procedure&&) {
    static_assert(
        !tasks::makes_task<Procedure>,
        "troupe: post: this is a coroutine, which would never run: give its task to spawn()");
  }
  TROUPE_REFUSE_REST(post,
                     "troupe: post: it takes a movable callable without parameters; wrap a name of "
                     "several functions or of a template in a lambda, post([] { work(5); })");

  // Runs the main thread's actors until the program is out of work or stop() was called. Then
  // throws the oldest failure that no run() has thrown yet, with its original exception. May be
  // called again. Throws usage_error if it is called from a handler, or by two threads at once.
  void run();

  // Runs the messages that are due on the main thread now, for a program that has a loop of its own
  // (a GUI). If none is due, run_once() waits for the next, for at most the given span, and poll()
  // returns. Under policy::one_thread a round runs all turns that are due, for about 1 ms. Returns
  // false if the program is out of work. Throws one failure, as run() does.
  // Thread: the one that would call run().
  //
  // Example:
  //     troupe::runtime rt;
  //     rt.after(std::chrono::milliseconds(40), [main = rt.main()] {
  //       main.post([] { std::cout << "a message\n"; });
  //     });
  //     while (rt.run_once(std::chrono::milliseconds(16))) {
  //       // draws a frame
  //     }
  bool run_once();
  bool run_once(time_span at_most);
  bool poll();

  // A descriptor for a loop that sleeps in poll(2), epoll or a library's own wait. It is readable
  // when poll() has something to do: work for the main thread, a stop, or the end of the program.
  // It is readable at first, and may be readable although poll() has nothing to do; each round
  // makes it unreadable, unless something is left to do. Under the simulated policy it is always
  // readable. Thread: any. Cost, once this function was called: a system call in each round, and
  // one for the first event between two rounds. Errors: std::system_error if there is no descriptor
  // left; usage_error under policy::one_thread, whose timers and I/O no descriptor shows. Lifetime:
  // the runtime closes it; never read from it.
  //
  // Example (declarations):
  //     #include <poll.h>
  //     bool wait_for_input_or_troupe(troupe::runtime& rt, int input) {
  //       pollfd both[] = {{input, POLLIN, 0}, {rt.wake_descriptor(), POLLIN, 0}};
  //       ::poll(both, 2, -1);
  //       return rt.poll();
  //     }
  int wake_descriptor();

  // The main thread of this runtime, to run procedures on it. Thread: any.
  main_thread main() const { return main_thread(main_); }

  // Calls the procedure on the pool, once after `span` or repeatedly every `period`, the first time
  // after one period. A long call does not stretch the period; calls do not overlap. cancel() of
  // the timer ends it, and so does the stop token. In a handler or a task troupe::after and
  // troupe::every do the same.
  //
  // Thread: any. Cost: about 100 ns. Accuracy: as sleep_for. Errors: an exception from a call is a
  // failure; later calls still happen. Throws option_error if the period, or the context's
  // bytes_max, is too small. Lifetime: a timer keeps the program alive, unless it is `weak`; a call
  // that is still due when the runtime ends never happens.
  timer after(time_span span, unique_function<void()> procedure, const timer_options& options);
  timer after(time_span span, unique_function<void()> procedure) {
    return after(span, std::move(procedure), timer_options());
  }
  timer every(time_span period, unique_function<void()> procedure, const timer_options& options);
  timer every(time_span period, unique_function<void()> procedure) {
    return every(period, std::move(procedure), timer_options());
  }
  template <tasks::makes_task Procedure>
  timer after(time_span, Procedure&&, const timer_options&) {
    static_assert(!tasks::makes_task<Procedure>, TROUPE_REFUSES_COROUTINE_OF("after"));
    return {};
  }
  template <tasks::makes_task Procedure>
  timer after(time_span span, Procedure&& procedure) {
    return after(span, std::forward<Procedure>(procedure), timer_options());
  }
  template <tasks::makes_task Procedure>
  timer every(time_span, Procedure&&, const timer_options&) {
    static_assert(!tasks::makes_task<Procedure>, TROUPE_REFUSES_COROUTINE_OF("every"));
    return {};
  }
  template <tasks::makes_task Procedure>
  timer every(time_span span, Procedure&& procedure) {
    return every(span, std::forward<Procedure>(procedure), timer_options());
  }
  TROUPE_REFUSE_REST(after, TROUPE_TIMER_REFUSES("after"));
  TROUPE_REFUSE_REST(every, TROUPE_TIMER_REFUSES("every"));

  // As troupe::blocking, from any thread.
  template <class Function>
  [[nodiscard]] auto blocking(Function&& function) {
    return actor::call_aside(system(), std::forward<Function>(function));
  }

  // Makes run() return: the current call, or the next one if none is running. Thread: any, in
  // handlers as well. Errors: if the deadline passes first, run() throws deadline_error with the
  // names of the handlers and blocking calls that still run. The stop remains in effect until those
  // have ended and nothing is queued any more. Until then holds do not count, and all queued and
  // sent messages become dead letters. The next run() first waits for that.
  void stop(stop_mode mode = stop_mode::drain, time_span deadline = std::chrono::seconds(10));

  // Keeps run() from returning while the returned object exists.
  [[nodiscard]] troupe::hold hold();

  // The failures that no run() has thrown yet, oldest first; at most
  // runtime_options::failures_kept. Thread: any, also during run(). Throws std::bad_alloc.
  std::vector<failure> errors() const;
  // The same, and removes them, so that no run() throws them: a program that runs under a hold can
  // thus read its failures.
  std::vector<failure> take_errors();
  // The failure that run() threw last, with its actor and method.
  failure thrown() const;
  // Drops the kept failures, so that no run() throws them. Thread: any.
  void clear_errors();

  // The number of threads of the pool.
  unsigned workers() const noexcept;

  // All counters and gauges, for each worker and as sums. Thread: any, in handlers as well. Cost:
  // some microseconds.
  runtime_metrics metrics() const;

  // The present state of the program as text: its handlers and its waits. It names the running
  // handlers, and has one line for each suspended turn or task, in the form of a stall report:
  // actor, method, source line, and the awaited event. At most 1,000 lines; the text counts the
  // others. A turn that is being resumed at this moment is in neither list. Thread: any, in
  // handlers as well, and even while all workers are stuck. Cost: about 1 us for each suspended
  // turn; other threads wait only for a moment, and a program that is never dumped pays nothing.
  // See runtime_options::dump_on_sigquit.
  //
  // Example:
  //     troupe::task<> guest(troupe::event door) { co_await door.wait(); }
  //     int main() {
  //       troupe::runtime rt;
  //       troupe::event door;
  //       rt.spawn(guest(door));
  //       rt.after(std::chrono::milliseconds(2), [&rt, door] {
  //         rt.dump(std::cerr);
  //         door.set();
  //       });
  //       rt.run();
  //     }
  std::string dump() const;
  void dump(std::ostream& to) const;

  // Time since the runtime was created; virtual under the simulated policy.
  std::chrono::nanoseconds now() const;
  // The seed of the simulated policy, which a failing test prints so that its run can be repeated.
  std::uint64_t seed() const noexcept;

 private:
  friend std::shared_ptr<observing::component_list> observing::components_of(const runtime& shown);
  friend detail::attachment& detail::attach(runtime& to, const void* key,
                                            std::unique_ptr<detail::attachment> (*make)());
  actor::actor_system& system() const noexcept;
  // The placement of a task with a context of its own.
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
