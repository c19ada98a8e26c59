#include "troupe/http/websocket.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "http/one_at_a_time.hpp"
#include "http/response_parts.hpp"
#include "http/utf8.hpp"
#include "troupe/base/error.hpp"
#include "troupe/http/message.hpp"
#include "troupe/io/error.hpp"
#include "troupe/parallel/schedule.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::http {

namespace {

enum code : int { continuation = 0, text = 1, binary = 2, close_frame = 8, ping = 9, pong = 10 };
constexpr std::size_t control_bytes_max = 125;

bool may_be_sent(int code) noexcept {
  return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) || (code >= 3000 && code <= 4999);
}

// Of the payload of a close.
int close_code_of(std::string_view payload) noexcept {
  if (payload.size() < 2) return 1005;
  return static_cast<unsigned char>(payload[0]) << 8 | static_cast<unsigned char>(payload[1]);
}

// Sixteen bytes in base64.
bool is_key(std::string_view key) noexcept {
  if (key.size() != 24 || key.substr(22) != "==") return false;
  return std::all_of(key.begin(), key.end() - 2, [](char one) {
    return (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') || (one >= '0' && one <= '9') || one == '+' ||
           one == '/';
  });
}

std::string answer_to(std::string_view key) {
  const std::string both = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash;
  unsigned bytes = 0;
  if (EVP_Digest(both.data(), both.size(), hash.data(), &bytes, EVP_sha1(), nullptr) != 1) {
    throw error("troupe: http: OpenSSL has no SHA-1");
  }
  std::array<unsigned char, 2 * EVP_MAX_MD_SIZE> letters;
  const int length = EVP_EncodeBlock(letters.data(), hash.data(), static_cast<int>(bytes));
  return std::string(letters.begin(), letters.begin() + length);
}

}  // namespace

namespace {

bool is_there_once(const fields& all, std::string_view name) noexcept {
  int count = 0;
  for (const field one : all) count += same_word(one.name, name) ? 1 : 0;
  return count == 1;
}

}  // namespace

int websocket_handshake(const message_head& head, std::string& fields) {
  const bool asks = head.method == method::get && head.wants_upgrade && lists_word(head.fields["upgrade"], "websocket");
  if (!asks || head.fields["sec-websocket-version"] != "13") {
    fields = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
    return 426;
  }
  const std::string_view key = head.fields["sec-websocket-key"];
  // Of two, a proxy may have looked at the other one.
  if (!is_key(key) || !is_there_once(head.fields, "sec-websocket-key") || !is_there_once(head.fields, "sec-websocket-version")) return 400;
  fields = "Sec-WebSocket-Accept: " + answer_to(key) + "\r\n";
  return 101;
}

struct websocket_end {
  // Of what the function threw: it sent something behind a close that was not its own, of which it had not heard yet.
  static bool is_cause(const websocket& of, const io_error& thrown) noexcept {
    return of.is_ended_ && thrown.code() == std::errc::broken_pipe;
  }
  static bool is_unsaid(const websocket& of) noexcept { return of.unsaid_ != 0; }
  static task<> say(websocket& to) { return to.say_failure(); }
};

task<> websocket_conversation(transport& over, std::string begun, websocket_function talk, websocket_options options) {
  websocket peer(over, std::move(begun), options);
  task<> running = talk(peer);
  std::exception_ptr failed;
  try {
    co_await std::move(running);
  } catch (const io_error& e) {
    if (!websocket_end::is_cause(peer, e)) failed = std::current_exception();
  } catch (...) {
    failed = std::current_exception();
  }
  try {
    if (websocket_end::is_unsaid(peer)) {
      co_await websocket_end::say(peer);
    } else if (peer.close_code() == 0) {
      co_await peer.close(failed == nullptr ? 1000 : 1011);
    }
  } catch (const io_error&) {  // the connection is no more
  } catch (...) {
    if (failed == nullptr) throw;  // else the function's own is what counts
  }
  if (failed != nullptr) std::rethrow_exception(std::move(failed));
}

void websocket::closed(int code, std::string reason) {
  if (close_code_ != 0) return;
  close_code_ = code;
  close_reason_ = std::move(reason);
}

void websocket::ends() noexcept { is_ended_ = is_ended_ || !close_sent_; }

task<> websocket::send_frame(int code, std::string payload) {
  if (close_sent_) throw io_error("send", "a WebSocket that is closed", EPIPE);
  close_sent_ = code == close_frame;
  std::string bytes;
  bytes.reserve(payload.size() + 10);
  bytes += static_cast<char>(0x80 | code);
  const std::size_t size = payload.size();
  if (size < 126) {
    bytes += static_cast<char>(size);
  } else {
    const int width = size < 65536 ? 2 : 8;
    bytes += static_cast<char>(width == 2 ? 126 : 127);
    for (int i = width - 1; i >= 0; --i) bytes += static_cast<char>(size >> (8 * i));
  }
  bytes += payload;
  try {
    co_await over_.send_owned(std::move(bytes));
  } catch (...) {
    if (code == close_frame) close_sent_ = false;
    throw;
  }
}

task<> websocket::send(std::string words) {
  if (!is_utf8(words)) throw usage_error("troupe: http::websocket: the text is no UTF-8");
  co_await send_frame(text, std::move(words));
}

task<> websocket::send_binary(std::string bytes) { co_await send_frame(binary, std::move(bytes)); }

task<> websocket::close(int code, std::string reason) {
  if (!may_be_sent(code)) throw usage_error("troupe: http::websocket: " + std::to_string(code) + " may not be sent");
  if (reason.size() > control_bytes_max - 2) {
    throw usage_error("troupe: http::websocket: the reason is longer than 123 bytes");
  }
  if (!is_utf8(reason)) throw usage_error("troupe: http::websocket: the reason is no UTF-8");
  if (close_sent_) co_return;
  std::string payload{static_cast<char>(code >> 8), static_cast<char>(code)};
  payload += reason;
  co_await send_frame(close_frame, std::move(payload));
}

// The peer does not keep to the protocol: it is told, and nothing of it is read any more.
task<> websocket::fail(int code) {
  closed(code, "");
  ends();
  unsaid_ = code;
  co_await say_failure();
}

task<> websocket::say_failure() {
  co_await close(unsaid_);
  unsaid_ = 0;
}

task<bool> websocket::more() {
  in_.erase(0, at_);
  at_ = 0;
  constexpr std::size_t at_once = 4096;
  // For what has come while nobody received.
  constexpr std::chrono::nanoseconds shortest = std::chrono::milliseconds(1);
  std::array<char, at_once> buffer;
  if (heard_.count() < 0) heard_ = now();
  for (;;) {
    const std::chrono::nanoseconds quiet = now() - heard_;
    if (ping_due_ && !close_sent_ && quiet < options_.ping_after) {
      co_await send_frame(ping, std::string());
      ping_due_ = false;
    }
    bool is_quiet = false, is_over = false;
    std::size_t bytes = 0;
    try {
      bytes = co_await over_.receive(buffer, std::max(options_.ping_after - quiet, shortest));
    } catch (const timed_out&) {
      is_quiet = true;
    } catch (const cancelled&) {
      is_over = true;
    }
    const bool given_up = co_await submissions::being_cancelled();
    if (bytes > 0) {
      asked_ = ping_due_ = false;
      heard_ = now();
      in_.append(buffer.data(), bytes);
      co_return true;
    }
    if (given_up && (is_over || is_quiet)) throw cancelled("troupe: http::websocket: the receive was given up");
    if (is_over) {
      ends();
      co_await close(1001);  // the server stops
      closed(1001, "");
      co_return false;
    }
    if (!is_quiet || asked_ || close_sent_) {
      closed(1006, "");
      co_return false;
    }
    asked_ = ping_due_ = true;
    heard_ = now();
  }
}

task<bool> websocket::need(std::size_t bytes) {
  while (in_.size() - at_ < bytes) {
    const bool came = co_await more();
    if (!came) co_return false;
  }
  co_return true;
}

task<bool> websocket::read_frame() {
  bool there = co_await need(2);
  if (!there) co_return false;
  const auto byte = [this](std::size_t i) { return static_cast<unsigned char>(in_[at_ + i]); };
  const unsigned first = byte(0), second = byte(1);
  frame one;
  one.last = (first & 0x80) != 0;
  one.code = static_cast<int>(first & 0x0F);
  const bool is_control = one.code >= close_frame;
  const bool known = one.code <= binary || (one.code >= close_frame && one.code <= pong);
  const unsigned length = second & 0x7F;
  const std::size_t width = length == 126 ? 2 : length == 127 ? 8 : 0;
  const bool fits = is_control ? one.last && length <= control_bytes_max : (one.code == continuation) == in_message_;
  // What clients send is masked.
  if ((first & 0x70) != 0 || (second & 0x80) == 0 || !known || !fits) {
    co_await fail(1002);
    co_return false;
  }
  there = co_await need(2 + width + 4);
  if (!there) co_return false;
  one.bytes = width == 0 ? length : 0;
  for (std::size_t i = 0; i < width; ++i) one.bytes = one.bytes << 8 | byte(2 + i);
  std::memcpy(&one.mask, in_.data() + at_ + 2 + width, 4);
  const bool is_short = (width == 2 && one.bytes < 126) || (width == 8 && one.bytes < 65536);
  if (is_short || one.bytes >> 63 != 0) {
    co_await fail(1002);
    co_return false;
  }
  if (!is_control && one.bytes > options_.message_bytes - message_.size()) {
    co_await fail(1009);
    co_return false;
  }
  at_ += 2 + width + 4;
  if (is_control) control_.clear();
  if (!is_control && !in_message_) message_is_text_ = one.code == text;
  in_message_ = in_message_ || !is_control;
  frame_ = one;
  frame_done_ = 0;
  in_frame_ = true;
  co_return true;
}

task<bool> websocket::read_payload(std::string& to) {
  std::array<char, 4> mask;
  std::memcpy(mask.data(), &frame_.mask, 4);
  while (frame_done_ < frame_.bytes) {
    if (at_ == in_.size()) {
      const bool came = co_await more();
      if (!came) co_return false;
    }
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(frame_.bytes - frame_done_, in_.size() - at_));
    for (std::size_t i = 0; i < bytes; ++i) to += static_cast<char>(in_[at_ + i] ^ mask[(frame_done_ + i) % 4]);
    at_ += bytes;
    frame_done_ += bytes;
  }
  in_frame_ = false;
  co_return true;
}

// To a ping, or to a close, which is the end.
task<> websocket::send_answer() {
  const bool ends = frame_.code == close_frame;
  if (!close_sent_) {
    std::string payload = ends ? answer_->substr(0, 2) : *answer_;
    co_await send_frame(ends ? close_frame : pong, std::move(payload));
  }
  if (ends) closed(close_code_of(*answer_), answer_->size() > 2 ? answer_->substr(2) : std::string());
  answer_.reset();
}

// False when that was the end.
task<bool> websocket::take_control() {
  if (frame_.code == pong) co_return true;
  if (frame_.code == close_frame) {
    const bool wrong = control_.size() == 1 || (control_.size() >= 2 && !may_be_sent(close_code_of(control_)));
    if (wrong || !is_utf8(std::string_view(control_).substr(std::min<std::size_t>(control_.size(), 2)))) {
      co_await fail(wrong ? 1002 : 1007);
      co_return false;
    }
    ends();
  }
  answer_ = std::move(control_);
  co_return true;
}

task<std::optional<websocket_message>> websocket::receive() {
  const one_at_a_time alone(is_received_, "troupe: http::websocket: a receive is under way already: await it first");
  if (!in_message_) message_.clear();
  while (close_code_ == 0 && !is_whole_) {
    if (answer_) {
      co_await send_answer();
      continue;
    }
    if (!in_frame_) {
      const bool begun = co_await read_frame();
      if (!begun) break;
    }
    const bool is_control = frame_.code >= close_frame;
    const bool whole = co_await read_payload(is_control ? control_ : message_);
    if (!whole) break;
    if (is_control) {
      const bool goes_on = co_await take_control();
      if (!goes_on) break;
      continue;
    }
    if (!frame_.last) continue;
    if (message_is_text_ && !is_utf8(message_)) {
      co_await fail(1007);
      break;
    }
    is_whole_ = true;
  }
  if (!is_whole_) {
    if (unsaid_ != 0) co_await say_failure();
    co_return std::nullopt;
  }
  // What ended the wait of a branch that is given up may have come in the same turn.
  const bool given_up = co_await submissions::being_cancelled();
  if (given_up) throw cancelled("troupe: http::websocket: the receive was given up");
  in_message_ = is_whole_ = false;
  websocket_message came;
  came.is_text = message_is_text_;
  came.data = message_;
  co_return std::optional<websocket_message>(came);
}

}  // namespace troupe::http
