// parser: the framing of HTTP/1.1: takes bytes, gives heads and bodies. It does no I/O.
#pragma once

#include "troupe/base/language.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/http/fault.hpp"
#include "troupe/http/fields.hpp"

namespace troupe::http {

// Which messages a parser reads.
enum class side : std::uint8_t { requests, responses };

// The limits of a parser. Input beyond one is refused with the named fault.
struct parser_limits {
  // Maximum bytes of the start line and the fields together, and of the trailer. Default 16 KiB, at
  // most 1 GiB; more is head_too_large (431).
  std::size_t head_bytes = 16 * 1024;
  // Maximum bytes of a request's target. Default 8 KiB; more is target_too_long (414).
  std::size_t target_bytes = 8 * 1024;
  // Maximum number of fields in a head, and in a trailer. Default 100; more is too_many_fields
  // (431).
  std::size_t fields = 100;
  // Maximum bytes of the extensions of all chunks of a body, together with leading zeros of their
  // sizes. It limits the cost of an endless body without content. Default 16 KiB; more is
  // chunk_extensions_too_long (400). The extensions of one chunk have at most 1 KiB.
  std::size_t chunk_extension_bytes = 16 * 1024;
};

// The start line and the fields; views into the input bytes.
struct message_head {
  http::method method = http::method::other;  // of a request
  std::string_view method_name;
  std::string_view target;       // as received
  std::string_view path, query;  // parts of the target: "/a%20b" and "x=1"; "*" is a path
  std::string_view host;         // from the target if it has a host; otherwise from the field
  int status = 0;                // of a response
  std::string_view reason;
  int major_version = 1;  // 2 for a request that came by HTTP/2; then minor_version is 0
  int minor_version = 1;
  http::fields fields;
  bool keep_alive = true;  // the connection can be used after this message
  bool chunked = false;
  bool has_length = false;  // there is a Content-Length, which is `length`
  std::uint64_t length = 0;
  bool has_body = false;          // steps with body bytes may follow
  bool until_close = false;       // for a response: the body ends with the connection
  bool expects_continue = false;  // the peer waits for "100 Continue" before it sends the body
  bool wants_upgrade = false;  // Connection contains the word upgrade, and there is a field Upgrade
  bool in_trace = false;       // of a request: there is a field traceparent
};

// Parses messages, with llhttp in its strict mode; input that llhttp accepts wrongly is refused
// here (fault). After `end` the next message begins. Thread: one at a time. Cost: no allocation
// once it has seen as many fields as arrive.
//
// Example:
//     troupe::http::parser reading(troupe::http::side::requests);
//     std::string_view input = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";
//     for (;;) {
//       const auto step = reading.next(input);
//       if (step.what == troupe::http::parser::event::head)
//         std::cout << reading.head().path << '\n';
//       if (step.what == troupe::http::parser::event::body) std::cout << step.body << '\n';
//       if (step.what == troupe::http::parser::event::end ||
//           step.what == troupe::http::parser::event::refused)
//         break;
//       input.remove_prefix(step.consumed);
//     }
class parser {
 public:
  enum class event : std::uint8_t {
    // call next() again with the bytes that were not consumed and with more behind them
    need_more,
    // head() is valid until the next message begins, or until the bytes consumed by this step are
    // released
    head,
    body,  // a part of the body, inside the input; may be empty
    end,   // the end of the message; trailer() is valid as long as the bytes consumed by this step
    refused,  // why() returns the reason; the parser cannot continue
  };
  struct step {
    event what;
    std::size_t consumed;
    std::string_view body;
  };

  explicit parser(http::side reads, const parser_limits& limits = {});
  parser(parser&&) = delete;

  // Parses one step. `input` begins with the first byte that was not consumed. A head and a trailer
  // are each consumed as a whole: all their bytes must be in one input.
  step next(std::string_view input);
  // Call it when the peer has ended its side. Returns `end` for a body that lasts until then, and
  // between two messages; otherwise `refused`, and why() returns truncated.
  step finish();

  // For responses: the method that the next response answers. A response to HEAD has no body.
  // Default get.
  void answers(http::method asked) noexcept { answers_ = asked; }

  // Call it after a head: maximum bytes of the body. A message that announces more is refused at
  // once, for a chunk by its length before its bytes arrive: body_too_large (413). Default: no
  // limit, for each message anew.
  void limit_body(std::uint64_t bytes) noexcept { body_bytes_max_ = bytes; }

  const message_head& head() const noexcept { return head_; }
  http::fields trailer() const noexcept { return trailer_; }
  fault why() const noexcept { return why_; }
  // Whether a message has begun and not ended. (An empty line before it does not count.)
  bool inside() const noexcept {
    return phase_ != phase::between && phase_ != phase::awaited && phase_ != phase::failed;
  }
  const parser_limits& limits() const noexcept { return limits_; }

 private:
  friend struct parser_callbacks;
  // `awaited`: at most an empty line of the head was read.
  enum class phase : std::uint8_t {
    between,
    awaited,
    head,
    method_unknown,
    body,
    trailer,
    ended,
    failed
  };
  // The part of a field that is being read: more of it may come until it is complete.
  enum class field_part : std::uint8_t { none, name, value };

  std::size_t distance(const char* at) const noexcept {
    return static_cast<std::size_t>(at - first_);
  }
  step refuse(fault why) noexcept;
  step read_section(std::string_view input);
  step read_body(std::string_view input);
  step name_unknown_method(std::string_view input);
  void count_extensions() noexcept;
  void begin_section(std::vector<http::fields::position>& positions) noexcept;
  // Checks the lines behind `at`, and unfolds an answer's.
  fault check_lines(std::string_view& section, std::size_t at, bool is_trailer);
  fault check_head(std::string_view section);
  fault check_trailer(std::string_view section);

  static constexpr std::size_t chunk_line_bytes_max = 1024;  // of a chunk's size and extensions
  static constexpr std::size_t state_bytes = 128;

  alignas(8) std::array<std::byte, state_bytes> state_;  // the state of llhttp
  const parser_limits limits_;
  const http::side side_;
  phase phase_ = phase::between;
  http::method answers_ = http::method::get;
  fault why_ = fault::none;
  field_part field_ = field_part::none;
  bool saw_last_chunk_ = false;
  bool folded_ = false;          // a value of the section is on several lines
  bool is_line_new_ = false;     // the line of the last chunk was not counted yet
  const char* first_ = nullptr;  // of the section (head or trailer) that is being read
  std::size_t scanned_ = 0;      // bytes of it that were scanned
  std::size_t target_at_ = 0, target_bytes_ = 0;
  std::size_t framing_bytes_ = 0;    // bytes of chunk framing since the last byte of the body
  std::size_t extension_bytes_ = 0;  // of all chunks so far
  std::uint64_t chunk_bytes_ = 0;    // of the chunk whose line was read last
  std::uint64_t left_ = 0;           // of a body with a known length
  std::uint64_t body_bytes_max_ = UINT64_MAX, announced_ = 0;  // announced_: of all chunks so far
  std::string_view piece_;
  std::vector<http::fields::position>* positions_ = nullptr;  // points to one of these
  std::vector<http::fields::position> head_positions_, trailer_positions_;
  message_head head_;
  http::fields trailer_;
  // The sections of an answer with a value over several lines, with spaces for their line ends.
  struct unfolded_sections {
    std::string head, trailer;
  };
  std::unique_ptr<unfolded_sections> unfolded_;
};

}  // namespace troupe::http
