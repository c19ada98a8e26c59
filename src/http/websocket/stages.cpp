#include "troupe/http/websocket.hpp"

#include "base/invariant.hpp"

namespace troupe::http {

void websocket::arrival::begin_frame(bool is_control) noexcept {
  TROUPE_INVARIANT(!is_in_frame(), "F1");
  TROUPE_INVARIANT(!is_whole(), "F2");
  frame_ = is_control ? frame_stage::control : frame_stage::of_message;
  if (!is_control) message_ = message_stage::in_frames;
}

void websocket::arrival::end_frame() noexcept {
  TROUPE_INVARIANT(is_in_frame(), "F1");
  frame_ = frame_stage::none;
}

void websocket::arrival::finish_message() noexcept {
  TROUPE_INVARIANT(message_ == message_stage::in_frames && !is_in_frame(), "F2");
  message_ = message_stage::whole;
}

void websocket::arrival::take_message() noexcept {
  TROUPE_INVARIANT(is_whole(), "F2");
  message_ = message_stage::none;
}

void websocket::ping_stage::ask() noexcept {
  TROUPE_INVARIANT(stage_ == stage::none, "P1");
  stage_ = stage::due;
}

void websocket::ping_stage::note_sent() noexcept {
  TROUPE_INVARIANT(is_due(), "P1");
  stage_ = stage::sent;
}

void websocket::close_stage::begin_to_send() noexcept {
  TROUPE_INVARIANT(!is_sent(), "E1");
  stage_ = stage_ == stage::open ? stage::sent : stage::answered;
}

void websocket::close_stage::fail_to_send() noexcept {
  TROUPE_INVARIANT(is_sent(), "E1");
  stage_ = stage_ == stage::sent ? stage::open : stage::ended;
}

}  // namespace troupe::http
