// recorder: the flight recorder of one thread: a ring of its last turns, and of the events between
// them (docs/protocols/flight_recorder.md).
//
// A record is one of these:
//   a turn     number: the actor's; code: the handler that was the last, and how many messages
//   a line     number: the actor's, which waits there; code: the line
//   an event   number: the event's; code: the event
//   a time     ticks / 256, the lowest 32 bits in the number and 4 more in the code: all records
//              since the time before are older
//   a time's high part, right behind the time, when it has changed
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/atomics.hpp"
#include "observe/flight/subjects.hpp"
#include "observe/flight/turn_ring.hpp"
#include "observe/ticks.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::observe {

// The handler that a thread runs right now.
struct running_now {
  std::uint64_t actor = 0;
  const char* handler = nullptr;  // null: nothing
};

class flight_recorder {
 public:
  using ring_of_turns = turn_ring<base::std_atomics>;
  static constexpr std::size_t bytes_least = std::size_t{64} << 10,
                               bytes_most = std::size_t{16} << 20;
  static constexpr unsigned messages_max = 15;  // a turn of more shows this number
  // A turn that is quick shares its time with the next ones, up to so many.
  static constexpr unsigned turns_a_time_max = 64;
  static constexpr unsigned tick_shift = 8, time_bits = 36, number_bits = 32;

  // From now on threads that run turns of a runtime with this option have a recorder, and threads
  // in which one of the events happens. The first call decides how many bytes each has.
  static void begin(std::size_t bytes) noexcept;

  // The calling thread's; null when memory has run out, or the thread ends.
  TROUPE_INLINE static flight_recorder* here() noexcept {
    flight_recorder* const own = of_thread_;
    return own != nullptr ? own : make();
  }
  // The recorders of all threads, newest first. They are never freed. Any thread, and signal
  // handlers.
  static const flight_recorder* first() noexcept;

  // A subject's code, if this thread has used it last of those that share its place.
  struct known {
    std::uint64_t key = 0;
    std::uint16_t code = 0;
  };
  TROUPE_INLINE known& known_for(std::uint64_t key) noexcept {
    return known_[(key >> 4) % known_.size()];
  }
  std::uint16_t learn(std::uint64_t key, const subjects::description& is) noexcept;
  // Learns that a key has no subject. Returns 0.
  std::uint16_t learn_none(std::uint64_t key) noexcept {
    known_for(key) = {key, 0};
    return 0;
  }

  // `low`: the lowest bits of the code, beside the subject.
  TROUPE_INLINE void put(std::uint32_t number, std::uint16_t code, unsigned low) noexcept {
    if (ring_.put({number, static_cast<std::uint16_t>(code | low)}) >= time_after_) [[unlikely]]
      put_time();
  }
  // With its time.
  void put_event(event kind, const char* text, std::uint64_t number) noexcept;

  const ring_of_turns& ring() const noexcept { return ring_; }
  const flight_recorder* next() const noexcept { return next_; }
  const char* thread_name() const noexcept { return name_; }
  unsigned number() const noexcept { return number_; }
  // Nanoseconds a tick; 0 if no time has passed since this recorder began.
  double rate_since_begin(const tick_scale& now) const noexcept {
    if (now.ticks <= began_.ticks || now.ns <= began_.ns) return 0;
    return static_cast<double>(now.ns - began_.ns) / static_cast<double>(now.ticks - began_.ticks);
  }
  // order: acquire  pairs with the end of the thread
  bool is_in_use() const noexcept { return in_use_.load(std::memory_order_acquire); }

  // The rate by the oldest recorder, which is the most exact.
  static double best_rate(const tick_scale& now) noexcept {
    double best = 0;
    for (const flight_recorder* recorder = first(); recorder != nullptr;
         recorder = recorder->next_) {
      if (const double rate = recorder->rate_since_begin(now); rate != 0) best = rate;
    }
    return best;
  }

  // Asks for the handler that a thread runs, by an address that the thread itself gives when its
  // recorder is made. Set before the first turn.
  using look_function = running_now (*)(const void* thread) noexcept;
  using thread_function = const void* (*)() noexcept;
  static void look_by(look_function look, thread_function thread) noexcept;
  running_now running() const noexcept;

 private:
  friend struct debugger_view;  // src/runtime/debugger_table.cpp
  struct leaving;

  flight_recorder(std::byte* memory, std::size_t size, flight_recorder* older) noexcept;
  static flight_recorder* make() noexcept;
  static flight_recorder* make_new(flight_recorder* older) noexcept;
  static flight_recorder* take_over(flight_recorder* newest) noexcept;
  static void forget_others() noexcept;
  void put_time() noexcept;
  void measure_rate(std::uint64_t ticks) noexcept;

  inline static constinit thread_local flight_recorder* of_thread_
      [[gnu::tls_model("initial-exec")]] = nullptr;

  ring_of_turns ring_;
  // the owner's own
  std::uint64_t time_after_ = 1;  // how many records there are before the next time
  std::uint64_t timed_ticks_ = 0, high_ = 0;
  unsigned turns_a_time_ = 1;
  std::array<known, 256> known_{};
  // how many records there are right after the thread has woken up; and whether it sleeps again
  // without having done anything, which is not recorded
  std::uint64_t woke_ = 0;
  bool sleeps_again_ = false;
  tick_scale began_;
  std::uint64_t rate_after_ = 0;

  std::atomic<double> rate_{0};  // ns a tick, for debuggers; 0: not known yet
  const unsigned number_;        // from 1 on
  flight_recorder* const next_;  // in the list of all
  std::atomic<bool> in_use_{true};
  std::atomic<const void*> thread_{nullptr};
  char name_[16] = "";
};

// The head of the list of all recorders, for a debugger.
const void* list_of_recorders() noexcept;

}  // namespace troupe::observe
