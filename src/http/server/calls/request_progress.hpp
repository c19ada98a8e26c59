// request_progress: the stages of a request's body and of its answer, by HTTP/1.1 and by HTTP/2.
//
// Threads: the connection's task and its children, one at a time.
// Invariants
//   P1  The body of a request ends once, or is cut off once, and nothing of it comes afterwards.
//   P2  An answer begins once and becomes whole once. An answer that is partly sent is completed,
//       or stays so until the connection ends.
//   P3  The answer on a stream that no longer exists changes no more.
#pragma once

#include <cstdint>

#include "base/invariant.hpp"

namespace troupe::http {

enum class body_stage : std::uint8_t {
  withheld,  // its client waits for "100 Continue"
  comes,
  ended,  // it is complete, or the request has none
  cut,    // the client has ended its half, and the rest never comes
};

enum class answer_stage : std::uint8_t {
  none,
  begun,   // its head is made: there is no other answer
  partly,  // a part of it may have been sent, and the rest is owed
  whole,   // nothing of it is left to be made
  closed,  // HTTP/2: the stream no longer exists
};

class request_progress {
 public:
  // For HTTP/1.1: the next request of the connection begins. The answer before is not partly sent.
  void begin(body_stage body) noexcept {
    TROUPE_INVARIANT(answer_ != answer_stage::partly && answer_ != answer_stage::closed, "P2");
    body_ = body;
    answer_ = answer_stage::none;
  }
  // The same: the request is over, and bytes behind it that are malformed get an answer of their
  // own.
  void finish() noexcept {
    if (answer_ != answer_stage::partly) answer_ = answer_stage::none;
  }

  // ---- the body ----
  // Its client waits for "100 Continue".
  void withhold_body() noexcept {
    TROUPE_INVARIANT(body_ == body_stage::comes, "P1");
    body_ = body_stage::withheld;
  }
  bool body_ended() const noexcept { return body_ == body_stage::ended; }
  bool body_is_cut() const noexcept { return body_ == body_stage::cut; }
  bool body_is_withheld() const noexcept { return body_ == body_stage::withheld; }
  // Returns true if "100 Continue" is due.
  bool continue_body() noexcept {
    if (!body_is_withheld()) return false;
    move(body_stage::comes);
    return true;
  }
  void end_body() noexcept { move(body_stage::ended); }
  // A body that has ended stays ended.
  void cut_body() noexcept {
    if (body_ == body_stage::withheld || body_ == body_stage::comes) move(body_stage::cut);
  }

  // ---- the answer ----
  bool answer_begun() const noexcept { return answer_ != answer_stage::none; }
  bool answer_is_partly_sent() const noexcept { return answer_ == answer_stage::partly; }
  bool answer_is_whole() const noexcept { return answer_ == answer_stage::whole; }
  bool is_closed() const noexcept { return answer_ == answer_stage::closed; }
  void begin_answer() noexcept {
    if (!is_closed()) move(answer_stage::begun);
  }
  // From now on there is no other answer, at whatever stage the present one is.
  void exclude_answers() noexcept {
    if (answer_ == answer_stage::none) move(answer_stage::begun);
  }
  void send_in_parts() noexcept { move(answer_stage::partly); }
  void end_answer() noexcept {
    if (!is_closed()) move(answer_stage::whole);
  }
  // Whatever it was.
  void close() noexcept { answer_ = answer_stage::closed; }

 private:
  void move([[maybe_unused]] body_stage to) noexcept {
    TROUPE_INVARIANT(body_ == body_stage::comes || (body_ == body_stage::withheld), "P1");
    body_ = to;
  }
  void move(answer_stage to) noexcept {
    TROUPE_INVARIANT(!is_closed(), "P3");
    TROUPE_INVARIANT(may_follow(answer_, to), "P2");
    answer_ = to;
  }
  static bool may_follow([[maybe_unused]] answer_stage from,
                         [[maybe_unused]] answer_stage to) noexcept {
    switch (to) {
      case answer_stage::begun:
        return from == answer_stage::none;
      case answer_stage::partly:
        return from == answer_stage::none || from == answer_stage::begun;
      case answer_stage::whole:
        return from == answer_stage::begun || from == answer_stage::partly;
      default:
        return false;
    }
  }

  body_stage body_ = body_stage::ended;
  answer_stage answer_ = answer_stage::none;
};

}  // namespace troupe::http
