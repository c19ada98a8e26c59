// parser: the framing of HTTP/1.1: bytes in, heads and bodies out. It does no I/O of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "troupe/http/fault.hpp"
#include "troupe/http/message.hpp"

namespace troupe::http {

enum class side : std::uint8_t { requests, responses };

struct parser_limits {
  // Bytes of the start line and the fields together, and of the trailer. Default 16 KiB, at most 1
  // GiB; more is head_too_large (431).
  std::size_t head_bytes = 16 * 1024;
  // Bytes of a request's target. Default 8 KiB; more is target_too_long (414).
  std::size_t target_bytes = 8 * 1024;
  // Fields of a head, and of a trailer. Default 100; more is too_many_fields (431).
  std::size_t fields = 100;
  // Bytes of the extensions of all chunks of a body together, with the zeros that their sizes begin
  // with: what an endless body costs that brings nothing. Default 16 KiB; more is
  // chunk_extensions_too_long (400). Those of one chunk have at most 1 KiB.
  std::size_t chunk_extension_bytes = 16 * 1024;
};

// The start line and the fields; views into the bytes that were given.
struct message_head {
  http::method method = http::method::other;  // of a request
  std::string_view method_name;
  std::string_view target;       // as it came
  std::string_view path, query;  // of the target: "/a%20b" and "x=1"; "*" is a path
  std::string_view host;         // of the target if it has one, else of the field
  int status = 0;                // of a response
  std::string_view reason;
  int minor_version = 1;  // HTTP/1.`minor_version`
  http::fields fields;
  bool keep_alive = true;  // the connection can go on after this message
  bool chunked = false;
  bool has_length = false;  // Content-Length, which is `length`
  std::uint64_t length = 0;
  bool has_body = false;          // body steps may follow
  bool until_close = false;       // of a response: the body ends with the connection
  bool expects_continue = false;  // the peer waits for "100 Continue" before it sends the body
  bool wants_upgrade = false;     // Connection has the word upgrade, and there is a field Upgrade
};

// Framing by llhttp in its strict mode; what that lets through and should not is refused (fault).
// Messages follow each other: after `end` the next one begins. One thread at a time. Cost: no
// allocation once it has seen as many fields as come.
//
// Example:
//     troupe::http::parser reading(troupe::http::side::requests);
//     std::string_view input = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";
//     for (;;) {
//       const auto step = reading.next(input);
//       if (step.what == troupe::http::parser::event::head) std::cout << reading.head().path <<
//       '\n'; if (step.what == troupe::http::parser::event::body) std::cout << step.body << '\n';
//       if (step.what == troupe::http::parser::event::end || step.what ==
//       troupe::http::parser::event::refused) break; input.remove_prefix(step.consumed);
//     }
class parser {
 public:
  enum class event : std::uint8_t {
    // give it these bytes again, those that it has consumed left out, with more behind them
    need_more,
    // head() is there, until the next message is begun or the bytes that were consumed by this step
    // are gone
    head,
    body,     // a part of it, within the input; may be empty
    end,      // of the message; trailer() is there, as long as the bytes consumed by this step
    refused,  // why(); nothing more can be read
  };
  struct step {
    event what;
    std::size_t consumed;
    std::string_view body;
  };

  explicit parser(http::side reads, const parser_limits& limits = {});
  parser(parser&&) = delete;

  // `input` begins with the first byte that was not consumed. A head and a trailer are consumed as
  // a whole: their bytes have to lie together.
  step next(std::string_view input);
  // The peer has ended. `end` for a body that goes on until then, and between two messages; else
  // refused: truncated.
  step finish();

  // Of responses: what the next one answers. One to HEAD has no body. Default get.
  void answers(http::method asked) noexcept { answers_ = asked; }

  // After a head: bytes of its body. What says that it has more is refused at once, by the length
  // of a chunk before its bytes have come: body_too_large (413). Default: any; each message begins
  // with that.
  void limit_body(std::uint64_t bytes) noexcept { body_bytes_max_ = bytes; }

  const message_head& head() const noexcept { return head_; }
  http::fields trailer() const noexcept { return trailer_; }
  fault why() const noexcept { return why_; }
  // A message has begun and not ended. (Bytes of an empty line before it do not count.)
  bool inside() const noexcept {
    return phase_ != phase::between && phase_ != phase::failed && (phase_ != phase::head || begun_);
  }
  const parser_limits& limits() const noexcept { return limits_; }

 private:
  friend struct parser_callbacks;
  enum class phase : std::uint8_t { between, head, method_unknown, body, trailer, ended, failed };

  std::size_t distance(const char* at) const noexcept {
    return static_cast<std::size_t>(at - first_);
  }
  step refuse(fault why) noexcept;
  step read_section(std::string_view input);
  step read_body(std::string_view input);
  step name_unknown_method(std::string_view input);
  void count_extensions() noexcept;
  void begin_section(std::vector<http::fields::position>& positions) noexcept;
  fault check_head(std::string_view section);
  fault check_trailer(std::string_view section);

  static constexpr std::size_t chunk_line_bytes_max = 1024;  // a chunk's size and extensions
  static constexpr std::size_t state_bytes = 128;

  alignas(8) std::array<std::byte, state_bytes> state_;  // of llhttp
  const parser_limits limits_;
  const http::side side_;
  phase phase_ = phase::between;
  http::method answers_ = http::method::get;
  fault why_ = fault::none;
  bool begun_ = false;
  bool saw_last_chunk_ = false;
  bool name_open_ = false, value_open_ = false;
  const char* first_ = nullptr;  // of the section (head or trailer) that is being read
  std::size_t scanned_ = 0;      // of its bytes
  std::size_t target_at_ = 0, target_bytes_ = 0;
  std::size_t framing_bytes_ = 0;                      // of chunks, since the last byte of the body
  std::size_t extension_bytes_ = 0;                    // of all chunks so far
  std::uint64_t chunk_bytes_ = 0;                      // of the chunk whose line came last
  bool is_line_new_ = false, is_first_chunk_ = false;  // of that line: it was not counted yet
  std::uint64_t left_ = 0;                             // of a body whose length was said
  std::uint64_t body_bytes_max_ = UINT64_MAX, announced_ = 0;  // the latter of chunks so far
  std::string_view piece_;
  std::vector<http::fields::position>* positions_ = nullptr;  // one of these
  std::vector<http::fields::position> head_positions_, trailer_positions_;
  message_head head_;
  http::fields trailer_;
};

}  // namespace troupe::http
