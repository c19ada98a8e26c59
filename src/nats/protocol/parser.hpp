// parser: the bytes of a NATS server as events. It uses neither a socket nor a clock.
//
// Limits: a line has at most 4 KiB, an INFO line 64 KiB; a header and a payload are limited by the
// options. Memory grows with the bytes that arrive, never with an announced length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::nats {

inline constexpr std::string_view line_end = "\r\n";

struct parser_limits {
  std::size_t line_bytes = 4'096;
  std::size_t info_bytes = 64 * 1024;
  std::size_t header_bytes = 64 * 1024;
  std::size_t message_bytes = 64 * 1024 * 1024;
};

class parser {
 public:
  enum class event : std::uint8_t { need_more, info, message, ping, pong, ok, refused, broken };
  struct step {
    event outcome;
    std::size_t consumed;
  };
  // The data that comes with `message`. The strings may be moved out.
  struct arrived {
    std::uint64_t sid = 0;
    std::string subject, reply;
    std::string header;  // the block
    std::string payload;
  };

  explicit parser(const parser_limits& limits) noexcept : limits_(limits) {}

  // Reads up to the next event; need_more only when all bytes were consumed. After `broken` it is
  // always `broken`.
  step next(std::string_view bytes);

  arrived& message() noexcept { return message_; }
  // The JSON of `info`, the words of `refused`, and the defect for `broken`.
  const std::string& text() const noexcept { return text_; }

 private:
  struct word_list;
  event end_line(std::string_view line);
  event begin_message(const word_list& words, bool has_header);
  event end_message();
  void grow(std::size_t more);
  event fail(const char* why);
  std::size_t line_limit(std::string_view more) const noexcept;

  const parser_limits limits_;
  std::string line_;  // the part of a line that came before
  arrived message_;
  std::string text_;
  std::size_t header_bytes_ = 0, left_ = 0;  // of a message whose bytes are due, its end included
  bool in_message_ = false, broken_ = false;
};

}  // namespace troupe::nats
