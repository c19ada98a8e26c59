// inbox: how many messages wait in memory, and which of those that are stored are not in memory.
//
// Lock: the engine's mutex is held in each function.
//
// Invariants
//   I1  A message is counted at most once, with the bytes of its arguments at that time, and only
//       in the generation in which it was counted: forget() begins the next generation.
//   I2  Messages that are left out of memory are counted among the waiting ones.
//   I3  While there is a backlog, the messages that are stored and not in memory are those with a
//       larger number than the last row that was read, except for the ones that are held.
//   I4  One reading is under way at most, and only while there is a backlog.
//   I5  A page may have rows that were removed after it was asked for: these are remembered as long
//       as a reading is under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "durable/memory/record.hpp"
#include "troupe/durable/store.hpp"

namespace troupe::durable::parts {

class inbox {
 public:
  explicit inbox(const options& limits) noexcept
      : waiting_max_(limits.waiting_max), bytes_max_(limits.waiting_bytes_max) {}
  inbox(const inbox&) = delete;
  inbox& operator=(const inbox&) = delete;

  // The numbers of messages.
  std::uint64_t next_order() noexcept { return ++last_order_; }
  void go_on_after(std::uint64_t order) noexcept { last_order_ = order; }
  // The message gets a larger number.
  void renumber(stored_message& message);

  // The messages that wait in memory (I1, I2).
  std::size_t waiting() const noexcept { return waiting_; }
  std::size_t waiting_bytes() const noexcept { return waiting_bytes_; }
  bool is_full() const noexcept { return waiting_ >= waiting_max_ || waiting_bytes_ >= bytes_max_; }
  void count(record& message) noexcept;
  void set_left_out(record& message, bool now) noexcept;
  // It has ended, or leaves memory.
  void leave(record& message) noexcept;

  // Stored messages that are not in memory (I3).
  bool has_backlog() const noexcept { return state_ != backlog::none; }
  // Messages in memory must be held next.
  void begin_backlog(std::uint64_t read_up_to = 0) noexcept;
  // All rows again; when that batch is stored.
  void read_from_begin(std::uint64_t after_batch = 0) noexcept;
  void hold(std::uint64_t order) { held_.insert(order); }
  // Everything leaves memory.
  void forget() noexcept;

  // The reading (I4, I5). Rows of one round are not used in the next round.
  std::uint64_t round() const noexcept { return round_; }
  void begin_round() noexcept { ++round_; }
  bool is_read() const noexcept { return state_ == backlog::is_read; }
  bool may_read(std::uint64_t stored_batch) const noexcept {
    return has_backlog() && has_room() && stored_batch >= read_after_;
  }
  void begin_reading() noexcept { change(backlog::is_read); }
  void pause_reading() noexcept { change(backlog::unread); }
  // Nothing is unread.
  void end_reading() noexcept;
  // Returns the number after which the page begins.
  std::uint64_t begin_page() noexcept;
  // Returns true if the next row of the page is in memory, or was handled.
  bool skips(std::uint64_t order) noexcept;
  void handled(const std::vector<std::uint64_t>& orders);

 private:
  enum class backlog : std::uint8_t { none, unread, is_read };

  void change(backlog to) noexcept;
  bool has_room() const noexcept {
    return waiting_ - outside_ <= waiting_max_ / 2 &&
           (waiting_bytes_ <= bytes_max_ / 2 || waiting_ == outside_);
  }

  const std::size_t waiting_max_;
  const std::size_t bytes_max_;
  std::uint64_t last_order_ = 0;
  std::uint64_t generation_ = 1;
  std::size_t waiting_ = 0;
  std::size_t waiting_bytes_ = 0;
  std::size_t outside_ = 0;  // how many of them are left out
  backlog state_ = backlog::none;
  std::uint64_t read_up_to_ = 0;
  std::uint64_t read_after_ = 0;  // the rows are read when this batch is stored,
  std::uint64_t round_ = 0;       // and once more after each change of this one
  std::unordered_set<std::uint64_t> held_;
  std::unordered_set<std::uint64_t> removed_meanwhile_;
};

}  // namespace troupe::durable::parts
