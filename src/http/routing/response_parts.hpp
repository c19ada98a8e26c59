// response_parts: what an answer has besides a plain body, and what a connection needs for files
// and WebSockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "troupe/http/parser.hpp"
#include "troupe/http/response.hpp"
#include "troupe/http/websocket.hpp"

namespace troupe::http {

struct response::special {
  static void* operator new(std::size_t bytes) { return memory::allocate(bytes); }
  static void operator delete(void* one, std::size_t bytes) noexcept {
    memory::deallocate(one, bytes);
  }

  enum class kind : std::uint8_t { file, stream, events, websocket };
  // A file up to this size is sent together with its head.
  static constexpr std::uint64_t small_bytes_max = 64 * 1024;
  bool is_small_file() const noexcept {
    return what == kind::file && file.bytes <= small_bytes_max;
  }

  kind what = kind::file;
  file_part file;
  stream_function stream;
  event_function events;
  websocket_function talk;
  websocket_options socket;
};

// Reads from `offset` of the part on. Returns the number of bytes, which is smaller than `to` at
// the end of the file. Blocks while the system reads from the disk what is not in its memory, so
// `to` is to be small.
std::size_t read_file(const file_part& part, std::uint64_t offset, std::span<char> to) noexcept;

// The answer to a request for a WebSocket.
struct websocket_answer {
  int status = 400;
  std::string fields;  // whole lines
  std::string why;     // the reason for a 400
  websocket_terms terms;
};
websocket_answer websocket_handshake(const message_head& head, const websocket_options& options);
// websocket_key: makes a client's Sec-WebSocket-Key. websocket_answer_to: what the server answers
// to it.
std::string websocket_key();
std::string websocket_answer_to(std::string_view key);
// Runs the conversation to its end. `begun`: the bytes that have come behind the request.
task<> websocket_conversation(transport& over, std::string begun, websocket_function talk,
                              websocket_options options, websocket_terms terms);

}  // namespace troupe::http
