// reminders: which reminder is due first, and which were sent and are not stored yet.
//
// Rows are read from the storage beside commits: a row that was read may be older than a commit
// that has ended meanwhile.
//
// Lock: the engine's mutex is held in each function; `wake` is called without it.
//
// Invariants
//   R1  A timer is armed for the earliest time that was planned, or for a moment before it.
//   R2  One reading is under way at most. A reminder that comes due meanwhile repeats it.
//   R3  A reminder whose message was sent is not sent again before its batch is stored and each
//       reading that began before that has ended. Stored ones are therefore remembered only while
//       a reading is under way.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "durable/memory/wall_clock.hpp"
#include "troupe/durable/storage.hpp"
#include "troupe/runtime/runtime.hpp"

namespace troupe::durable::parts {

// So many periods after a time; the latest time of the clock instead of a later one.
due_time time_after(due_time begin, std::chrono::milliseconds period, std::int64_t times);
// The texts of stored_reminder::rule for reminders that come again; next_time() reads them.
std::string rule_every(std::chrono::milliseconds period);
std::string rule_by(std::string_view cron);
// When the reminder is due next after `now`; no value: never again. A rule that this version does
// not have is due once more: then the reminder is removed.
std::optional<due_time> next_time(const stored_reminder& reminder, due_time now);
// The name of a reminder, unique among all actors.
std::string reminder_name_of(const actor_name& actor, const std::string& reminder);

class reminders {
 public:
  reminders(runtime& on, const wall_clock& clock) noexcept : on_(on), clock_(clock) {}
  reminders(const reminders&) = delete;
  reminders& operator=(const reminders&) = delete;
  ~reminders() { timer_.cancel(); }

  // `wake` is called when a reminder is due; it is to call wake() then.
  void open(std::function<void()> wake) { when_due_ = std::move(wake); }

  // Reads not later than at that time.
  void plan(due_time due);
  // After a reading has failed, for instance.
  void plan_after(std::chrono::milliseconds pause) { plan(clock_.now() + pause); }

  // The timer has ended. Returns true if a reading is to begin.
  bool wake();
  std::size_t read_max() const noexcept;
  // Once for each reading: its rows have been looked at, or it has failed.
  void end_reading();

  // Before the rows of a reading; then for each row of a class that the program does not have.
  void begin_rows() noexcept { strange_ = 0; }
  void skip_row() noexcept { ++strange_; }
  // Returns false if the message was sent already.
  bool send(const stored_reminder& reminder);
  // The batch with the message is stored.
  void stored(const batch::fired_reminder& reminder);
  // A reminder that was sent and is not stored is still due. It is planned again if `reads_again`.
  void forget(bool reads_again);

 private:
  using firing = std::pair<std::string, due_time>;
  enum class reading : std::uint8_t { none, under_way, repeats };

  void change(reading to);

  runtime& on_;
  const wall_clock& clock_;
  std::function<void()> when_due_;
  std::optional<due_time> next_due_;
  timer timer_;
  reading reading_ = reading::none;
  std::size_t strange_ = 0;  // that are due, of classes that the program does not have
  // Those whose messages were sent and are not stored; and, until those that were read meanwhile
  // have been looked at, those that are.
  std::set<firing> firing_;
  std::vector<firing> fired_meanwhile_;
};

}  // namespace troupe::durable::parts
