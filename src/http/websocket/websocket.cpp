#include "troupe/http/websocket.hpp"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <span>
#include <utility>

#include "base/text/release.hpp"
#include "http/base64.hpp"
#include "http/fields/field_line.hpp"
#include "http/h1/send_order.hpp"
#include "http/routing/response_parts.hpp"
#include "http/server/calls/call_end.hpp"
#include "http/server/calls/one_at_a_time.hpp"
#include "http/websocket/handshake/deflate.hpp"
#include "http/websocket/handshake/websocket_terms.hpp"
#include "http/websocket/utf8.hpp"
#include "troupe/base/error.hpp"
#include "troupe/http/fields.hpp"
#include "troupe/io/error.hpp"
#include "troupe/parallel/submitted.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/when.hpp"

namespace troupe::http {

namespace {

enum code : int { continuation = 0, text = 1, binary = 2, close_frame = 8, ping = 9, pong = 10 };
constexpr int last_frame = 0x80, first_reserved_bit = 0x40;
constexpr std::size_t control_bytes_max = 125;
// The most memory that is kept for the next message.
constexpr std::size_t kept_message_bytes = 64 * 1024;

bool may_be_sent(int code) noexcept {
  return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
         (code >= 3000 && code <= 4999);
}

// How many bytes the frames of a compressed message may have when the message may have
// `message_bytes` bytes. Flushes between its fragments make it longer. Twice as many is more than
// any peer needs, and limits a peer that sends empty blocks without end.
std::uint64_t deflated_bytes_max(std::uint64_t message_bytes) noexcept {
  constexpr std::uint64_t largest = UINT64_MAX / 2 - 1024;
  return 2 * std::min(message_bytes, largest) + 1024;
}

// `payload`: of a close frame.
int close_code_of(std::string_view payload) noexcept {
  if (payload.size() < 2) return 1005;
  return static_cast<unsigned char>(payload[0]) << 8 | static_cast<unsigned char>(payload[1]);
}

// True for sixteen bytes in base64.
bool is_key(std::string_view key) noexcept {
  if (key.size() != 24 || key.substr(22) != "==") return false;
  return std::all_of(key.begin(), key.end() - 2, [](char character) {
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9') || character == '+' || character == '/';
  });
}

void fill_randomly(std::span<char> room) {
  if (RAND_bytes(reinterpret_cast<unsigned char*>(room.data()), static_cast<int>(room.size())) !=
      1) {
    throw error("troupe: http: OpenSSL has no random bytes");
  }
}

}  // namespace

std::string websocket_key() {
  std::array<char, 16> bytes;
  fill_randomly(bytes);
  return in_base64({bytes.data(), bytes.size()});
}

std::string websocket_answer_to(std::string_view key) {
  const std::string both = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash;
  unsigned bytes = 0;
  if (EVP_Digest(both.data(), both.size(), hash.data(), &bytes, EVP_sha1(), nullptr) != 1) {
    throw error("troupe: http: OpenSSL has no SHA-1");
  }
  return in_base64({reinterpret_cast<const char*>(hash.data()), bytes});
}

namespace {

// A list may be spread over several fields with the same name.
bool any_lists(const fields& all, std::string_view name, std::string_view word) noexcept {
  return std::any_of(all.begin(), all.end(), [&](field field) {
    return same_word(field.name, name) && lists_word(field.value, word);
  });
}

}  // namespace

websocket_answer websocket_handshake(const message_head& head, const websocket_options& options) {
  websocket_answer result;
  const bool asks = head.method == method::get && head.wants_upgrade &&
                    any_lists(head.fields, "upgrade", "websocket");
  if (!asks || head.fields["sec-websocket-version"] != "13") {
    result.fields = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
    result.status = 426;
    return result;
  }
  const std::string_view key = head.fields["sec-websocket-key"];
  // When there are two such fields, a proxy may have read the other field.
  if (!is_key(key) || head.fields.count("sec-websocket-key") != 1 ||
      head.fields.count("sec-websocket-version") != 1) {
    result.why =
        "Sec-WebSocket-Key has to be there once, as 16 bytes in base64, and Sec-WebSocket-Version "
        "once";
    return result;
  }
  result.why = accept_terms(head.fields, options, result.terms, result.fields);
  if (!result.why.empty()) return result;
  std::string accept;
  append_field(accept, "Sec-WebSocket-Accept", websocket_answer_to(key), "websocket");
  result.fields.insert(0, accept);
  result.status = 101;
  return result;
}

struct websocket_end {
  // True when the user's function threw because it sent after the peer's close, which the function
  // had not seen yet. That is not an error.
  static bool is_cause(const websocket& socket, const io_error& thrown) noexcept {
    return socket.close_.is_ended() && thrown.code() == std::errc::broken_pipe;
  }
  static bool is_unsaid(const websocket& socket) noexcept { return socket.unsaid_ != 0; }
  static task<> say(websocket& socket) { return socket.say_failure(); }
  static task<bool> is_left_alone(websocket& socket) { return socket.is_left_alone(); }
};

namespace {

// Ends the call when its peer has ended the connection and the function does not receive: it would
// learn of that from nothing else before it sends again.
task<> end_with_peer(task<> peer_end, websocket& peer, call_end& ends) {
  co_await std::move(peer_end);
  const bool is_alone = co_await websocket_end::is_left_alone(peer);
  if (is_alone) ends.end(call_end::cause::peer_gone);
}

}  // namespace

task<> websocket_conversation(transport& over, std::string begun, websocket_function talk,
                              websocket_options options, websocket_terms terms, call_end& ends,
                              task<> peer_end) {
  const struct kept_until_the_end {
    transport& by;
    ~kept_until_the_end() { by.retains(0); }
  } kept{over};
  websocket peer(over, std::move(begun), options, std::move(terms));
  task<bool> running = ends.run(talk(peer), end_with_peer(std::move(peer_end), peer, ends));
  std::exception_ptr failed;
  int code = 1000;
  try {
    const bool has_returned = co_await std::move(running);
    if (!has_returned) code = 1001;
  } catch (const io_error& e) {
    if (!websocket_end::is_cause(peer, e)) failed = std::current_exception();
  } catch (...) {
    failed = std::current_exception();
  }
  const bool is_alone = ends.why() == call_end::cause::peer_gone;
  try {
    if (is_alone) {  // no peer is left to be notified
    } else if (websocket_end::is_unsaid(peer)) {
      co_await websocket_end::say(peer);
    } else if (peer.close_code() == 0) {
      co_await peer.close(failed == nullptr ? code : 1011);
    }
  } catch (const io_error&) {  // the connection no longer exists
  } catch (...) {
    if (failed == nullptr) throw;  // otherwise the exception of the user's function counts
  }
  if (failed != nullptr) std::rethrow_exception(std::move(failed));
}

// The objects that an end needs to compress messages. A connection that has not agreed on
// compression has none.
struct websocket::parts {
  explicit parts(const websocket_terms& terms)
      : can_deflate(bits_of(terms, terms.is_client) >= 9),
        out(bits_of(terms, terms.is_client), keeps(terms, terms.is_client), *terms.deflate),
        inflater(bits_of(terms, !terms.is_client), keeps(terms, !terms.is_client)) {}
  static int bits_of(const websocket_terms& terms, bool of_client) noexcept {
    return of_client ? terms.deflate->client_max_window_bits
                     : terms.deflate->server_max_window_bits;
  }
  static bool keeps(const websocket_terms& terms, bool of_client) noexcept {
    return !(of_client ? terms.deflate->client_no_context_takeover
                       : terms.deflate->server_no_context_takeover);
  }

  std::size_t memory() const noexcept { return out.memory() + inflater.memory(); }

  send_order order;  // the peer inflates messages in the order in which they were compressed
  const bool can_deflate;
  message_deflater out;
  message_inflater inflater;
};

websocket::websocket(transport& over, std::string begun, const websocket_options& options,
                     websocket_terms terms)
    : over_(over),
      options_(options),
      terms_(std::move(terms)),
      input_(std::move(begun)),
      next_(input_.size()) {
  if (terms_.deflate) parts_ = std::make_unique<parts>(terms_);
  over_.frees_by(&free_kept, this);
}
websocket::~websocket() { over_.frees_by(nullptr, nullptr); }

void websocket::closed(int code, std::string reason) {
  if (close_code_ != 0) return;
  close_code_ = code;
  close_reason_ = std::move(reason);
}

// A client masks its payload with bytes that cannot be predicted. Otherwise an attacker who chooses
// the payload could make a proxy read a request in it.
std::string websocket::frame_of(int first, std::string_view payload) const {
  constexpr std::size_t head_bytes_max = 14;
  const std::size_t size = payload.size();
  const int masked = terms_.is_client ? 0x80 : 0;
  std::string bytes;
  bytes.reserve(size + head_bytes_max);
  bytes += static_cast<char>(first);
  if (size < 126) {
    bytes += static_cast<char>(masked | static_cast<int>(size));
  } else {
    const int width = size < 65536 ? 2 : 8;
    bytes += static_cast<char>(masked | (width == 2 ? 126 : 127));
    for (int i = width - 1; i >= 0; --i) bytes += static_cast<char>(size >> (8 * i));
  }
  if (!terms_.is_client) return bytes.append(payload);
  std::array<char, 4> mask;
  fill_randomly(mask);
  bytes.append(mask.data(), mask.size());
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(payload[i] ^ mask[i % 4]);
  return bytes;
}

task<> websocket::send_frame(int code, std::string payload) {
  if (close_.is_sent()) throw io_error("send", "a WebSocket that is closed", EPIPE);
  if (code == close_frame) close_.begin_to_send();
  try {
    if (parts_ != nullptr) {
      co_await send_in_order(code, std::move(payload));
    } else {
      std::string bytes = frame_of(last_frame | code, payload);
      co_await over_.send_owned(std::move(bytes));
    }
  } catch (...) {
    if (code == close_frame) close_.fail_to_send();
    throw;
  }
}

namespace {
// Takes the bytes up, and lays them down again if they were at rest.
struct bytes_in_use {
  explicit bytes_in_use(transport& over) noexcept
      : transport_(over), was_at_rest_(over.take_up()) {}
  bytes_in_use(const bytes_in_use&) = delete;
  bytes_in_use& operator=(const bytes_in_use&) = delete;
  ~bytes_in_use() {
    if (was_at_rest_) transport_.lay_down();
  }

 private:
  transport& transport_;
  const bool was_at_rest_;
};
}  // namespace

// Compresses a message only when its turn to be sent has begun. A message that is cancelled before
// that is part of no context.
task<> websocket::send_in_order(int code, std::string payload) {
  const send_order::turn mine(parts_->order);
  if (!mine.has_come()) co_await mine.comes();
  std::string deflated;
  const bool may_deflate =
      parts_->can_deflate && code < close_frame && payload.size() >= terms_.deflate->least_bytes;
  try {
    if (may_deflate) {
      const bytes_in_use own(over_);
      if (!over_.is_ended()) {
        deflated = parts_->out.compress(payload);
        over_.retains(kept_bytes());
      }
    }
    const bool is_deflated = !deflated.empty();
    std::string bytes =
        frame_of(is_deflated ? last_frame | first_reserved_bit | code : last_frame | code,
                 is_deflated ? deflated : payload);
    co_await over_.send_owned(std::move(bytes));
  } catch (...) {
    // The peer never receives the bytes that a later message would refer to.
    if (may_deflate) {
      const bytes_in_use own(over_);
      parts_->out.forget();
    }
    throw;
  }
}

task<> websocket::send(std::string words) {
  if (!is_utf8(words))
    throw usage_error(
        "troupe: http::websocket: the text is not UTF-8; send it as a binary message");
  co_await send_frame(text, std::move(words));
}

task<> websocket::send_binary(std::string bytes) { co_await send_frame(binary, std::move(bytes)); }

task<> websocket::close(int code, std::string reason) {
  if (!may_be_sent(code))
    throw usage_error("troupe: http::websocket: " + std::to_string(code) + " may not be sent");
  if (reason.size() > control_bytes_max - 2) {
    throw usage_error("troupe: http::websocket: the reason is longer than 123 bytes; shorten it");
  }
  if (!is_utf8(reason))
    throw usage_error("troupe: http::websocket: the reason is not UTF-8; encode it");
  if (close_.is_sent()) co_return;
  std::string payload{static_cast<char>(code >> 8), static_cast<char>(code)};
  payload += reason;
  co_await send_frame(close_frame, std::move(payload));
}

// The peer broke the protocol: it gets a close frame, and nothing more of it is read.
task<> websocket::fail(int code) {
  closed(code, "");
  close_.end();
  unsaid_ = code;
  co_await say_failure();
}

task<> websocket::say_failure() {
  try {
    co_await close(unsaid_);
  } catch (const io_error&) {  // the peer has disconnected and cannot be notified
  }
  unsaid_ = 0;
}

std::size_t websocket::kept_bytes() const noexcept {
  return input_.capacity() + message_.capacity() + control_.capacity() +
         (parts_ == nullptr ? 0 : parts_->memory());
}

// The bytes are at rest, or the task that uses them frees them.
void websocket::free_kept(websocket& ended) noexcept {
  base::release(ended.input_);
  base::release(ended.message_);
  base::release(ended.control_);
  ended.at_ = 0;
  if (ended.parts_ == nullptr) return;
  ended.parts_->out.end();
  ended.parts_->inflater.end();
}

// Ends here, with an exception, if too much is kept, and most of it for this one.
void websocket::check_kept() {
  if (!over_.is_ended()) return;
  over_.lay_down();
  closed(1006, "");
  over_.check_kept();
}

// How much longer to wait for the rest of a message that the peer has begun to send.
std::chrono::nanoseconds websocket::patience() noexcept {
  return next_.bytes() == 0 ? std::chrono::nanoseconds::max()
                            : next_.patience(over_.message_pace());
}

// A whole message has arrived, or a control frame outside of a message. Bytes of the next one may
// already be here.
void websocket::begin_next() noexcept { next_ = paced_arrival(input_.size() - at_); }

task<bool> websocket::more() {
  input_.erase(0, at_);
  at_ = 0;
  over_.retains(kept_bytes());  // the last bytes may have been inflated since
  check_kept();
  constexpr std::size_t at_once = 4096;
  // The shortest wait, for bytes that came while the user did not receive.
  constexpr std::chrono::nanoseconds shortest = std::chrono::milliseconds(1);
  std::array<char, at_once> buffer;
  if (heard_.count() < 0) heard_ = now();
  if (untaken_ && !untaken_->is_set()) {  // the rest of the peer's bytes is on its way
    const std::size_t before = input_.size();
    co_await untaken_->wait();
    if (input_.size() > before) co_return true;
  }
  for (;;) {
    const std::chrono::nanoseconds begun = now(), quiet = begun - heard_, patient = patience();
    if (ping_.is_due() && !close_.is_sent() && quiet < options_.ping_after) {
      co_await send_frame(ping, std::string());
      ping_.note_sent();
    }
    bool is_quiet = false, is_over = false;
    std::size_t bytes = 0;
    try {
      const std::chrono::nanoseconds longest = std::min(options_.ping_after - quiet, patient);
      over_.lay_down();
      bytes = co_await over_.receive(buffer, std::max(longest, shortest));
    } catch (const timed_out&) {
      is_quiet = true;
    } catch (const cancelled&) {
      is_over = true;
    } catch (const error&) {
      check_kept();
      throw;
    }
    over_.take_up();
    check_kept();
    if (next_.bytes() > 0) next_.waited(now() - begun);
    const bool given_up = co_await submissions::being_cancelled();
    if (bytes > 0) {
      next_.came(bytes);
      ping_.note_answer();
      heard_ = now();
      input_.append(buffer.data(), bytes);
      over_.retains(kept_bytes());
      check_kept();
      co_return true;
    }
    if (given_up && (is_over || is_quiet))
      throw cancelled("troupe: http::websocket: the receive was given up");
    if (is_quiet && patience().count() <= 0) {
      co_await fail(1008);
      co_return false;
    }
    if (is_quiet && now() - heard_ < options_.ping_after) continue;
    if (is_over) {
      close_.end();
      co_await close(1001);  // the server stops
      closed(1001, "");
      co_return false;
    }
    if (!is_quiet || ping_.is_unanswered() || close_.is_sent()) {
      closed(1006, "");
      co_return false;
    }
    ping_.ask();
    heard_ = now();
  }
}

// Waits until no receive() is under way, and no message is left. Returns whether the function has
// not seen the end yet.
task<bool> websocket::is_left_alone() {
  unreceived_.emplace();
  untaken_.emplace();
  for (;;) {
    while (is_received_) {
      unreceived_->reset();
      co_await unreceived_->wait();
    }
    if (close_code_ != 0) co_return false;
    if (has_message()) {
      unreceived_->reset();
      co_await unreceived_->wait();
      continue;
    }
    if (at_end_) co_return true;
    untaken_->reset();
    task<> taking = take_rest();
    co_await std::move(taking);
    untaken_->set();
    if (!at_end_ && !has_message()) co_return false;  // a message of more bytes than are allowed
  }
}

// The peer's end is there already: this waits for nothing.
task<> websocket::take_rest() {
  constexpr std::chrono::seconds longest{1};
  std::array<char, 4096> buffer;
  while (!at_end_ && !has_message() && input_.size() - at_ <= options_.message_bytes) {
    std::size_t bytes = 0;
    try {
      bytes = co_await over_.receive(buffer, longest);
    } catch (const error&) {
    }
    at_end_ = bytes == 0;
    input_.append(buffer.data(), bytes);
  }
}

// Whether a whole frame of a message waits to be received.
bool websocket::has_message() const noexcept {
  if (arrival_.is_whole()) return true;
  bool is_data = arrival_.is_in_frame_of_message();
  std::uint64_t left = arrival_.is_in_frame() ? frame_.bytes - frame_done_ : 0;
  for (std::size_t at = at_;;) {
    if (input_.size() - at < left) return false;
    at += static_cast<std::size_t>(left);
    if (is_data) return true;
    if (input_.size() - at < 2) return false;
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(input_[at + i]); };
    const unsigned length = byte(1) & 0x7F;
    const std::size_t width = length == 126 ? 2 : length == 127 ? 8 : 0;
    const std::size_t head = 2 + width + ((byte(1) & 0x80) != 0 ? 4 : 0);
    if (input_.size() - at < head) return false;
    is_data = (byte(0) & 0x0F) < close_frame;
    left = width == 0 ? length : 0;
    for (std::size_t i = 0; i < width; ++i) left = left << 8 | byte(2 + i);
    at += head;
  }
}

task<bool> websocket::need(std::size_t bytes) {
  while (input_.size() - at_ < bytes) {
    const bool came = co_await more();
    if (!came) co_return false;
  }
  co_return true;
}

// Returns the close code for a frame that begins with these two bytes and breaks the protocol; 0
// when the frame is allowed.
int websocket::breach_of(unsigned first, unsigned second) const noexcept {
  const int code = static_cast<int>(first & 0x0F);
  const bool is_control = code >= close_frame;
  const bool known = code <= binary || (code >= close_frame && code <= pong);
  const unsigned length = second & 0x7F;
  const bool is_last = (first & last_frame) != 0;
  const bool fits = is_control ? is_last && length <= control_bytes_max
                               : (code == continuation) == arrival_.is_in_message();
  // A bit of a message's first frame shows whether the message is compressed.
  const bool may_deflate = parts_ != nullptr && (code == text || code == binary);
  const unsigned reserved = may_deflate ? 0x30 : 0x70;
  const bool is_masked = (second & 0x80) != 0;  // clients mask their frames, servers do not
  return (first & reserved) != 0 || is_masked == terms_.is_client || !known || !fits ? 1002 : 0;
}

task<bool> websocket::read_frame() {
  bool has_bytes = co_await need(2);
  if (!has_bytes) co_return false;
  const auto byte = [this](std::size_t i) { return static_cast<unsigned char>(input_[at_ + i]); };
  const unsigned first = byte(0), second = byte(1);
  if (const int breach = breach_of(first, second); breach != 0) {
    co_await fail(breach);
    co_return false;
  }
  frame head;
  head.last = (first & last_frame) != 0;
  head.code = static_cast<int>(first & 0x0F);
  const bool is_control = head.code >= close_frame;
  const unsigned length = second & 0x7F;
  const std::size_t width = length == 126   ? 2
                            : length == 127 ? 8
                                            : 0,
                    mask_bytes = terms_.is_client ? 0 : 4;
  has_bytes = co_await need(2 + width + mask_bytes);
  if (!has_bytes) co_return false;
  head.bytes = width == 0 ? length : 0;
  for (std::size_t i = 0; i < width; ++i) head.bytes = head.bytes << 8 | byte(2 + i);
  std::memcpy(&head.mask, input_.data() + at_ + 2 + width, mask_bytes);
  const bool is_short = (width == 2 && head.bytes < 126) || (width == 8 && head.bytes < 65536);
  if (is_short || head.bytes >> 63 != 0) {
    co_await fail(1002);
    co_return false;
  }
  const bool begins = !is_control && !arrival_.is_in_message();
  const bool is_deflated = begins ? (first & first_reserved_bit) != 0 : message_is_deflated_;
  // A compressed message may be longer than the inflated one, but not by much.
  const std::uint64_t before = begins ? 0 : is_deflated ? deflated_bytes_ : message_.size();
  const std::uint64_t most =
      is_deflated ? deflated_bytes_max(options_.message_bytes) : options_.message_bytes;
  if (!is_control && head.bytes > most - before) {
    co_await fail(1009);
    co_return false;
  }
  at_ += 2 + width + mask_bytes;
  if (is_control) control_.clear();
  if (begins) {
    message_code_ = head.code;
    message_is_deflated_ = is_deflated;
    deflated_bytes_ = 0;
  }
  if (!is_control) deflated_bytes_ += head.bytes;
  frame_ = head;
  frame_done_ = 0;
  arrival_.begin_frame(is_control);
  co_return true;
}

// Inflates the next piece of a compressed message. Returns the close code for a piece that is
// refused, or 0.
int websocket::inflate(std::string_view piece) {
  switch (parts_->inflater.add(piece, message_, options_.message_bytes)) {
    case inflate_result::whole:
      return 0;
    case inflate_result::too_large:
      return 1009;
    case inflate_result::malformed:
      break;
  }
  return 1007;
}

// Call it when all frames of a message have arrived. Returns the close code for a message that is
// refused, or 0.
int websocket::finish_message() {
  if (message_is_deflated_) {
    const inflate_result how = parts_->inflater.finish(message_, options_.message_bytes);
    if (how != inflate_result::whole) return how == inflate_result::too_large ? 1009 : 1007;
  }
  return message_code_ == text && !is_utf8(message_) ? 1007 : 0;
}

task<bool> websocket::read_payload(std::string& to) {
  std::array<char, 4> mask;
  std::memcpy(mask.data(), &frame_.mask, 4);
  const bool is_deflated = frame_.code < close_frame && message_is_deflated_;
  while (frame_done_ < frame_.bytes) {
    if (at_ == input_.size()) {
      const bool came = co_await more();
      if (!came) co_return false;
    }
    const auto bytes = static_cast<std::size_t>(
        std::min<std::uint64_t>(frame_.bytes - frame_done_, input_.size() - at_));
    const std::span<char> piece(input_.data() + at_, bytes);
    if (!terms_.is_client) {
      for (std::size_t i = 0; i < bytes; ++i)
        piece[i] = static_cast<char>(piece[i] ^ mask[(frame_done_ + i) % 4]);
    }
    at_ += bytes;
    frame_done_ += bytes;
    const std::string_view came(piece.data(), piece.size());
    const int wrong = is_deflated ? inflate(came) : 0;
    if (wrong != 0) {
      co_await fail(wrong);
      co_return false;
    }
    if (!is_deflated) to += came;
  }
  arrival_.end_frame();
  co_return true;
}

// Answers a ping, or a close, which ends the connection.
task<> websocket::send_answer() {
  const bool ends = frame_.code == close_frame;
  if (!close_.is_sent()) {
    std::string payload = ends ? answer_->substr(0, 2) : *answer_;
    try {
      co_await send_frame(ends ? close_frame : pong, std::move(payload));
    } catch (const io_error&) {
      if (!ends) throw;  // otherwise the peer has disconnected, as it announced
    }
  }
  if (ends && terms_.is_client) co_await over_.end_with_peer();
  if (ends)
    closed(close_code_of(*answer_), answer_->size() > 2 ? answer_->substr(2) : std::string());
  answer_.reset();
}

// Returns false when the connection has ended.
task<bool> websocket::take_control() {
  if (frame_.code == pong) co_return true;
  if (frame_.code == close_frame) {
    const bool wrong =
        control_.size() == 1 || (control_.size() >= 2 && !may_be_sent(close_code_of(control_)));
    if (wrong ||
        !is_utf8(std::string_view(control_).substr(std::min<std::size_t>(control_.size(), 2)))) {
      co_await fail(wrong ? 1002 : 1007);
      co_return false;
    }
    close_.end();
  }
  answer_ = std::move(control_);
  co_return true;
}

task<std::optional<websocket_message>> websocket::receive() {
  struct told_at_end {
    websocket& socket;
    ~told_at_end() {
      if (has_begun && !is_read) socket.over_.lay_down();
      if (socket.unreceived_) socket.unreceived_->set();
    }
    bool has_begun = false;  // else another receive() is under way, and refuses this one
    bool is_read = false;    // by the program, until the next receive()
  } told{*this};
  const one_at_a_time alone(
      is_received_, "troupe: http::websocket: a receive is under way already: await it first");
  over_.take_up();
  told.has_begun = true;
  check_kept();
  if (!arrival_.is_in_message()) {
    message_.clear();
    if (message_.capacity() > kept_message_bytes) base::release(message_);
  }
  while (close_code_ == 0 && !arrival_.is_whole()) {
    if (answer_) {
      co_await send_answer();
      continue;
    }
    if (!arrival_.is_in_frame()) {
      const bool begun = co_await read_frame();
      if (!begun) break;
    }
    const bool is_control = frame_.code >= close_frame;
    const bool whole = co_await read_payload(is_control ? control_ : message_);
    if (!whole) break;
    if (is_control) {
      if (!arrival_.is_in_message()) begin_next();
      const bool goes_on = co_await take_control();
      if (!goes_on) break;
      continue;
    }
    if (!frame_.last) continue;
    if (const int wrong = finish_message(); wrong != 0) {
      co_await fail(wrong);
      break;
    }
    begin_next();
    arrival_.finish_message();
  }
  if (!arrival_.is_whole()) {
    if (unsaid_ != 0) co_await say_failure();
    co_return std::nullopt;
  }
  // A branch that is being cancelled may find that its message came in the same turn. The message
  // then stays for the next receive.
  co_await tasks::before_taking();
  const bool given_up = co_await submissions::being_cancelled();
  if (given_up) throw cancelled("troupe: http::websocket: the receive was given up");
  arrival_.take_message();
  websocket_message came;
  came.is_text = message_code_ == text;
  came.data = message_;
  told.is_read = true;
  co_return std::optional<websocket_message>(came);
}

}  // namespace troupe::http
