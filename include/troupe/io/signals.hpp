// signals: makes signals of the system (SIGINT, SIGTERM, …) awaitable.
#pragma once

#include "troupe/base/language.hpp"

#include <csignal>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "troupe/io/operations/suspension.hpp"

namespace troupe {

namespace io {

class signal_job {
 public:
  using result = int;
  static constexpr action opcode = action::read;
  signal_job(descriptor& from, bool weak) noexcept : from_(&from), weak_(weak) {}
  descriptor& prepare(operation_suspension& wait) noexcept;
  int finish(operation_suspension& wait) const;

 private:
  descriptor* from_;
  std::byte came_{};
  bool weak_;
};

}  // namespace io

// Options of a signal_listener.
struct signal_options {
  // True: the program may be out of work while this waits for signals. Default true.
  bool weak = true;
};

// Receives signals instead of their former effect, from listen() on, on whichever thread they
// arrive, and keeps them for next(). If several listeners receive the same signal, each of them
// gets it. Move-only. When the last listener for a signal is destroyed, the signal's former effect
// is restored, unless the program has set another one meanwhile. Limits: at most 32 listeners at a
// time in a process; not for the SIGQUIT of runtime_options::dump_on_sigquit.
//
// Example (declarations):
//     troupe::task<> stop_by_signal(troupe::runtime& rt) {
//       auto signals = troupe::signal_listener::listen({SIGINT, SIGTERM});
//       co_await signals.next();
//       rt.stop(troupe::stop_mode::drain);
//     }
class signal_listener {
 public:
  signal_listener() = default;  // listens to nothing
  signal_listener(signal_listener&& other) noexcept { *this = std::move(other); }
  signal_listener& operator=(signal_listener&& other) noexcept;
  ~signal_listener() { close(); }

  // Starts to receive these signals. Thread: any. Throws option_error for a signal that cannot be
  // caught or that reports a broken program (SIGSEGV, …), usage_error for a 33rd listener,
  // io_error.
  static signal_listener listen(std::initializer_list<int> signals,
                                const signal_options& options = {});

  // Waits for the next signal and returns its number. Await it in a handler or a task, optionally
  // with .timeout(span) and .stop(token). A signal that arrives while 65,536 signals are kept is
  // lost; also, the system itself keeps only one signal of each number until a thread can receive
  // it.
  io::awaitable<io::signal_job> next() noexcept {
    return io::awaitable<io::signal_job>(std::in_place, descriptor_, weak_);
  }

  bool is_open() const noexcept { return descriptor_.is_open(); }
  // Operations that are under way end as cancelled.
  void close() noexcept;

 private:
  void release_slot() noexcept;
  io::descriptor descriptor_;
  int place_ = -1;
  bool weak_ = true;
};

}  // namespace troupe
