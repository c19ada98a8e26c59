// The stages of a connection of HTTP/2: of its reader, its writes, and the announcement of its end.
//
// Threads: the connection's task and its children, one at a time.
// Invariants
//   C1  At most one of the reader and the writer writes.
//   C4  GOAWAY is announced once, and names the last requests once.
//   C5  A reader that has ended reads no more, unless the connection was parked.
#pragma once

#include <cstdint>

#include "base/invariant.hpp"

namespace troupe::http::h2 {

class reader_stage {
 public:
  bool has_client_ended() const noexcept { return stage_ == stage::client_ended; }
  // run() ends, for the connection is to be parked.
  bool parks() const noexcept { return stage_ == stage::parks; }
  bool has_ended() const noexcept { return stage_ == stage::parks || stage_ == stage::ended; }

  // A new connection reads, or one that was parked.
  void begin() noexcept {
    TROUPE_INVARIANT(stage_ == stage::reads || stage_ == stage::parks, "C5");
    stage_ = stage::reads;
  }
  // The client has ended its half.
  void note_client_end() noexcept { move(stage::client_ended); }
  void park() noexcept { move(stage::parks); }
  void end() noexcept {
    if (!parks()) stage_ = stage::ended;
  }

 private:
  enum class stage : std::uint8_t { reads, client_ended, parks, ended };
  void move(stage to) noexcept {
    TROUPE_INVARIANT(stage_ == stage::reads, "C5");
    stage_ = to;
  }
  stage stage_ = stage::reads;
};

class write_stage {
 public:
  bool is_under_way() const noexcept { return stage_ != stage::rests; }
  void begin() noexcept {
    TROUPE_INVARIANT(stage_ == stage::rests, "C1");
    stage_ = stage::under_way;
  }
  // More bytes are to be sent behind it.
  void note_more() noexcept {
    if (is_under_way()) stage_ = stage::wanted_again;
  }
  // Returns true if more is to be sent.
  bool end() noexcept {
    TROUPE_INVARIANT(is_under_way(), "C1");
    const bool more = stage_ == stage::wanted_again;
    stage_ = stage::rests;
    return more;
  }

 private:
  enum class stage : std::uint8_t { rests, under_way, wanted_again };
  stage stage_ = stage::rests;
};

// The end of the connection, as GOAWAY announces it.
class goaway_stage {
 public:
  bool is_announced() const noexcept { return stage_ != stage::none; }
  void announce() noexcept { move(stage::announced); }
  // The client has answered the announcement, if any.
  void note_answer() noexcept {
    if (stage_ == stage::announced) stage_ = stage::answered;
  }
  bool is_answered() const noexcept { return stage_ == stage::answered; }
  // GOAWAY is now to name the last requests. Returns false if it has named them already.
  bool begin_last() noexcept {
    if (stage_ == stage::last) return false;
    stage_ = stage::last;
    return true;
  }

 private:
  enum class stage : std::uint8_t { none, announced, answered, last };
  void move(stage to) noexcept {
    TROUPE_INVARIANT(stage_ == stage::none, "C4");
    stage_ = to;
  }
  stage stage_ = stage::none;
};

}  // namespace troupe::http::h2
