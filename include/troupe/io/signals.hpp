// Signals of the system (SIGINT, SIGTERM, …) as something to await.
#pragma once

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
  static constexpr action what = action::read;
  signal_job(descriptor& from, bool weak) noexcept : from_(&from), weak_(weak) {}
  descriptor& prepare(operation_suspension& wait) noexcept;
  int finish(operation_suspension& wait) const;

 private:
  descriptor* from_;
  std::byte came_{};
  bool weak_;
};

}  // namespace io

struct signal_options {
  // True: the program may be out of work while this waits for signals. Default true.
  bool weak = true;
};

// While it lives its signals do not have the effect that they had before; they are kept here, from
// the moment it was made, on whatever thread they come. When several listen to the same one, each
// of them gets it. Move-only. With the last listener of a signal its former effect is back, unless
// the program has set another one meanwhile. At most 32 at a time in a process; not for
// runtime_options::dump_on_sigquit's SIGQUIT.
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

  // Anywhere. Throws option_error for a signal that cannot be caught, or that says that the program
  // is broken (SIGSEGV, …), usage_error for a 33rd listener, io_error.
  static signal_listener listen(std::initializer_list<int> signals,
                                const signal_options& options = {});

  // The next one: its number. In a handler or a task; with .timeout(span) and .stop(token) if you
  // like. One that comes while very many are kept (65,536) is lost; and of a kind, the system
  // itself keeps one while no thread has time for it.
  io::awaitable<io::signal_job> next() noexcept {
    return io::awaitable<io::signal_job>(std::in_place, descriptor_, weak_);
  }

  bool is_open() const noexcept { return descriptor_.is_open(); }
  // What is under way ends as cancelled.
  void close() noexcept;

 private:
  void release_slot() noexcept;
  io::descriptor descriptor_;
  int place_ = -1;
  bool weak_ = true;
};

}  // namespace troupe
