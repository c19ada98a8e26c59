#include "troupe/io/signals.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "troupe/io/error.hpp"

namespace troupe {
namespace {

// One listener: its signals, and the pipe that they are written to. The signal handler may read
// this at any time, on any thread.
struct listener_place {
  std::atomic<std::uint64_t> signals{0};  // one bit for each signal; 0: no listener
  std::atomic<int> pipe{-1};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

constexpr std::size_t listeners_max = 32;
constexpr int signals_max = 64;
constinit std::array<listener_place, listeners_max> places;
// How many handlers run now. A pipe is closed only when none of them can still write to it.
constinit std::atomic<int> handling{0};

std::mutex changes;  // guards the rest
struct disposition {
  int listeners = 0;
  struct sigaction before {};
};
disposition dispositions[signals_max + 1];

constexpr std::uint64_t bit_of(int signal) { return std::uint64_t{1} << (signal - 1); }

void on_signal(int signal) {
  const int before = errno;
  // order: seq_cst (both)  either this handler sees that the listener is destroyed, or the listener
  // waits for this handler; pairs with stop_writing
  handling.fetch_add(1, std::memory_order_seq_cst);
  for (listener_place& place : places) {
    if ((place.signals.load(std::memory_order_seq_cst) & bit_of(signal)) == 0) continue;
    const auto number = static_cast<unsigned char>(signal);
    // order: relaxed  written before the signals were
    [[maybe_unused]] const auto written =
        ::write(place.pipe.load(std::memory_order_relaxed), &number, 1);
  }
  // order: release  the handler has finished writing; pairs with stop_writing's load
  handling.fetch_sub(1, std::memory_order_release);
  errno = before;
}

void stop_writing(listener_place& at) noexcept {
  // order: seq_cst (both)  as on_signal
  at.signals.store(0, std::memory_order_seq_cst);
  while (handling.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
}

void check_can_listen(int signal) {
  const bool known = signal > 0 && signal <= signals_max;
  const bool ours = signal != SIGKILL && signal != SIGSTOP && signal != SIGSEGV &&
                    signal != SIGBUS && signal != SIGFPE && signal != SIGILL && signal != SIGTRAP &&
                    signal != SIGSYS;
  if (known && ours) return;
  throw option_error("troupe: signal_listener: signal " + std::to_string(signal) +
                     ": it must be one from 1 to 64 that can be caught, and not one of a broken "
                     "program (SIGSEGV and its like)");
}

// The caller holds the mutex.
void leave(int signal) noexcept {
  disposition& disposition = dispositions[signal];
  if (--disposition.listeners != 0) return;
  struct sigaction now {};
  ::sigaction(signal, nullptr, &now);
  if (now.sa_handler == &on_signal) ::sigaction(signal, &disposition.before, nullptr);
}

void leave_all(std::uint64_t signals) noexcept {
  for (int signal = 1; signal <= signals_max; ++signal) {
    if ((signals & bit_of(signal)) != 0) leave(signal);
  }
}

// The caller holds the mutex. Returns false with errno set.
bool enter(int signal) noexcept {
  disposition& disposition = dispositions[signal];
  if (disposition.listeners++ != 0) return true;
  struct sigaction ours {};
  ours.sa_handler = &on_signal;
  ours.sa_flags = SA_RESTART;
  sigemptyset(&ours.sa_mask);
  if (::sigaction(signal, &ours, &disposition.before) == 0) return true;
  disposition.listeners = 0;
  return false;
}

}  // namespace

namespace io {

descriptor& signal_job::prepare(operation_suspension& wait) noexcept {
  wait.data = &came_;
  wait.bytes = 1;
  wait.socket = false;
  wait.weak = weak_;
  return *from_;
}

int signal_job::finish(operation_suspension& wait) const {
  wait.check("signal_listener::next");
  return std::to_integer<int>(came_);
}

}  // namespace io

signal_listener signal_listener::listen(std::initializer_list<int> signals,
                                        const signal_options& options) {
  std::uint64_t wanted = 0;
  for (const int signal : signals) {
    check_can_listen(signal);
    wanted |= bit_of(signal);
  }
  signal_listener listener;
  listener.weak_ = options.weak;

  std::lock_guard lock(changes);
  // order: relaxed  under the mutex
  const auto is_free = [](const listener_place& candidate) {
    return candidate.pipe.load(std::memory_order_relaxed) < 0;
  };
  const auto place = std::ranges::find_if(places, is_free);
  if (place == places.end())
    throw usage_error(
        "troupe: signal_listener: 32 listeners exist already; share one, or close listeners that "
        "are not needed");
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) < 0)
    throw io_error("pipe", "signal_listener", errno);
  listener.descriptor_ = io::descriptor(ends[0]);
  listener.place_ = static_cast<int>(place - places.begin());
  place->pipe.store(ends[1], std::memory_order_relaxed);  // order: relaxed  as above
  // The signals are set before the handler is installed, so that the first signal is not lost.
  for (int signal = 1; signal <= signals_max; ++signal) {
    if ((wanted & bit_of(signal)) == 0) continue;
    // order: release  a thread that sees the signal sees the pipe
    place->signals.fetch_or(bit_of(signal), std::memory_order_release);
    if (enter(signal)) continue;
    const int number = errno;
    // order: release  as above
    place->signals.fetch_and(~bit_of(signal), std::memory_order_release);
    listener.release_slot();
    throw io_error("sigaction", "signal " + std::to_string(signal), number);
  }
  return listener;
}

// The caller holds the mutex.
void signal_listener::release_slot() noexcept {
  listener_place& place = places[static_cast<std::size_t>(std::exchange(place_, -1))];
  // order: relaxed (all)  under the mutex
  leave_all(place.signals.load(std::memory_order_relaxed));
  stop_writing(place);
  ::close(place.pipe.exchange(-1, std::memory_order_relaxed));
}

signal_listener& signal_listener::operator=(signal_listener&& other) noexcept {
  if (this == &other) return *this;
  close();
  descriptor_ = std::move(other.descriptor_);
  place_ = std::exchange(other.place_, -1);
  weak_ = other.weak_;
  return *this;
}

void signal_listener::close() noexcept {
  if (place_ >= 0) {
    std::lock_guard lock(changes);
    release_slot();
  }
  descriptor_.close();
}

}  // namespace troupe
