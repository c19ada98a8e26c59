// last_turns: reads the flight recorders of all threads, newest record first.
//
// Threads: any, beside threads that record; also a signal handler: nothing here allocates or locks.
// Records that are overwritten meanwhile are left out (F2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "observe/flight/recorder.hpp"
#include "observe/output.hpp"

namespace troupe::observe {

// A turn, a line or an event, with its time.
struct last_turn {
  const flight_recorder* thread = nullptr;
  const subject* is =
      nullptr;               // null: a turn without a handler of the user, or with an unknown one
  bool is_other = false;     // it is null because the table of subjects was full
  std::uint32_t number = 0;  // the actor's, or the event's
  unsigned messages = 0;     // of a turn
  std::uint64_t ticks = 0;
  // The turn shares its time with others: `ticks` is between that time and the time before.
  bool is_estimate = false;

  // Not a line or an event.
  bool is_turn() const noexcept { return is == nullptr || is->kind == event::handle_end; }
};

// Writes a record in words, without its time and thread. Nothing allocates, unless `to` does.
void write_turn(output& to, const last_turn& turn) noexcept;

// The records of one thread, from the newest to the oldest.
class turns_of_thread {
 public:
  turns_of_thread() noexcept = default;
  turns_of_thread(const flight_recorder& recorder, std::uint64_t now_ticks) noexcept;

  bool there() const noexcept { return there_; }
  const last_turn& get() const noexcept { return current_; }
  void advance() noexcept;
  // Records that were overwritten while this object read.
  bool was_overtaken() const noexcept { return overtaken_; }

 private:
  bool read(std::uint64_t at, turn_record& to) noexcept;
  void take_time(std::uint64_t at, const turn_record& turn) noexcept;
  std::uint64_t ticks_of(const turn_record& time) const noexcept;
  void give_time() noexcept;

  const flight_recorder* recorder_ = nullptr;
  std::uint64_t at_ = 0;               // the record to look at next is the one below
  std::uint64_t begun_ = 0;            // the ticks at which the reader began
  std::uint64_t later_ = 0;            // the ticks of the time above; at most `begun_`
  std::optional<std::uint64_t> high_;  // the high part of the time below, if it was met
  // Of the records between the time above and the time below.
  std::uint64_t earlier_ = 0, group_ = 0, done_ = 0;
  bool there_ = false, overtaken_ = false;
  bool open_ = true;  // there is no time above: the records are older than now
  last_turn current_{};
};

// The records of all threads, newest first. Of more than `threads_max`, those with the newest
// recorders.
class last_turns {
 public:
  static constexpr std::size_t threads_max = 256;
  explicit last_turns(std::uint64_t now_ticks) noexcept;
  last_turns(const last_turns&) = delete;
  last_turns& operator=(const last_turns&) = delete;

  // False when there are no more.
  bool next(last_turn& to) noexcept;
  std::size_t left_out() const noexcept { return left_out_; }
  bool was_overtaken() const noexcept;

 private:
  turns_of_thread threads_[threads_max];
  std::size_t count_ = 0, left_out_ = 0;
};

// Writes that many of the newest records as a table, and the handler that each thread runs. For a
// signal handler; one call at a time. Returns false when it could not be written.
bool write_last_turns(int fd, std::size_t lines) noexcept;

}  // namespace troupe::observe
