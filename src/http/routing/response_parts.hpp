// response_parts: what the answers have that are more than a body; and what a connection needs of
// files and WebSockets.
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
  // of a file that is sent with its head
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

// From `offset` of the part on: how many bytes; less at the end of the file. What is not in the
// system's memory is read from the disk meanwhile: `to` is to be small.
std::size_t read_file(const file_part& part, std::uint64_t offset, std::span<char> to) noexcept;

// What a request for a WebSocket is answered.
struct websocket_answer {
  int status = 400;
  std::string fields;  // whole lines
  std::string why;     // of a 400
  websocket_terms terms;
};
websocket_answer websocket_handshake(const message_head& head, const websocket_options& options);
// A client's Sec-WebSocket-Key, and what the server says to it.
std::string websocket_key();
std::string websocket_answer_to(std::string_view key);
// To its end. `begun`: what has come behind the request.
task<> websocket_conversation(transport& over, std::string begun, websocket_function talk,
                              websocket_options options, websocket_terms terms);

}  // namespace troupe::http
