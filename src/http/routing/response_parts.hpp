// response_parts: the parts of an answer besides a plain body, and the functions of a connection
// for files and WebSockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "http/coding/encoder.hpp"
#include "troupe/http/parser.hpp"
#include "troupe/http/response.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::http {

class call_end;

// The body of an answer that a function sends in pieces: one of the two functions.
struct streamed_body {
  stream_function stream;
  event_function events;
  std::optional<coding> coded_by;  // the pieces are encoded
  std::optional<std::uint64_t> length;
  // The length that the head announces: none for a body that is encoded.
  std::optional<std::uint64_t> sent_length() const noexcept {
    return coded_by ? std::nullopt : length;
  }
};
// Sends the body, until its function returns or its call ends. Returns false if the body is not
// whole. An event stream that ends with its server is whole: it ends behind an event, and its
// client comes again.
task<bool> send_streamed(streamed_body& body, body_writer& to, call_end& ends);

struct response::special {
  static void* operator new(std::size_t bytes) { return memory::allocate(bytes); }
  static void operator delete(void* storage, std::size_t bytes) noexcept {
    memory::deallocate(storage, bytes);
  }

  enum class kind : std::uint8_t { file, streamed, websocket };
  // A file up to this size is sent together with its head.
  static constexpr std::uint64_t small_bytes_max = 64 * 1024;
  bool is_small_file() const noexcept {
    return answer_kind == kind::file && file.bytes <= small_bytes_max;
  }

  // Whether the answer is a stream of events, which has no end of its own.
  static bool is_event_stream(const response& answer) noexcept;

  kind answer_kind = kind::file;
  file_part file;
  streamed_body streamed;
  websocket_function talk;
  websocket_options socket;
};

// Reads from `offset` of the part on. Returns the number of bytes, which is smaller than `to` at
// the end of the file. Blocks while the system reads from the disk if the bytes are not in its
// memory; `to` is therefore to be small.
std::size_t read_file(const file_part& part, std::uint64_t offset, std::span<char> room) noexcept;

// The answer to a request for a WebSocket.
struct websocket_answer {
  int status = 400;
  std::string fields;  // whole lines
  std::string why;     // the reason for a 400
  websocket_terms terms;
};
websocket_answer websocket_handshake(const message_head& head, const websocket_options& options);
// websocket_key: makes a client's Sec-WebSocket-Key. websocket_answer_to: the server's answer
// to it.
std::string websocket_key();
std::string websocket_answer_to(std::string_view key);
// Runs the conversation to its end, or until its call ends. `begun`: the bytes that have arrived
// behind the request. `peer_end` completes when the client has ended its half of the connection,
// perhaps behind bytes that were not received yet.
task<> websocket_conversation(transport& over, std::string begun, websocket_function talk,
                              websocket_options options, websocket_terms terms, call_end& ends,
                              task<> peer_end);

}  // namespace troupe::http
