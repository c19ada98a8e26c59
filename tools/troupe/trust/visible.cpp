#include "trust/visible.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "trust/failure.hpp"

namespace troupe_tool {
namespace {

// How many bytes the character at the begin has, if it is one of UTF-8; else 0.
std::size_t character(std::string_view text) {
  const auto byte = [text](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  if (byte(0) < 0x80) return 1;
  const std::size_t size = byte(0) >= 0xf5   ? 0
                           : byte(0) >= 0xf0 ? 4
                           : byte(0) >= 0xe0 ? 3
                           : byte(0) >= 0xc2 ? 2
                                             : 0;
  if (size == 0 || size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool is_overlong =
      (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xf0 && byte(1) < 0x90);
  const bool is_beyond =
      (byte(0) == 0xed && byte(1) >= 0xa0) || (byte(0) == 0xf4 && byte(1) >= 0x90);
  return is_overlong || is_beyond ? 0 : size;
}

// The same, if the character can be printed.
std::size_t printable(std::string_view text) {
  const std::size_t size = character(text);
  const auto byte = [text](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  if (size == 1) return byte(0) >= 0x20 && byte(0) != 0x7f ? 1 : 0;
  if (size == 2 && byte(0) == 0xc2 && byte(1) < 0xa0) return 0;  // control characters of eight bits
  if (size == 3 && byte(0) == 0xe2) {
    const bool is_break = byte(1) == 0x80 && (byte(2) == 0xa8 || byte(2) == 0xa9);
    const bool turns =
        (byte(1) == 0x80 && (byte(2) == 0x8e || byte(2) == 0x8f || byte(2) >= 0xaa) &&
         byte(2) <= 0xae) ||
        (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9);
    if (is_break || turns) return 0;
  }
  return size;
}

std::string shown_as(std::string_view text, std::string_view mark) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t size = printable(text);
    if (size > 0) {
      shown += text.substr(0, size);
    } else {
      shown += fmt::format("{}{:02x}", mark, static_cast<unsigned char>(text.front()));
    }
    text.remove_prefix(size > 0 ? size : 1);
  }
  return shown;
}

void put_as(std::string_view text, std::string_view mark, std::FILE* to) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string line = shown_as(text.substr(0, end), mark);
    std::fwrite(line.data(), 1, line.size(), to);
    if (end == std::string_view::npos) return;
    std::fputc('\n', to);
    text.remove_prefix(end + 1);
  }
}

constexpr std::string_view usual_mark = "\\x", metrics_mark = "\\\\x";

}  // namespace

std::string shown(std::string_view text) { return shown_as(text, usual_mark); }

void put(std::string_view text, std::FILE* to) { put_as(text, usual_mark, to); }

void put_metrics(std::string_view text) { put_as(text, metrics_mark, stdout); }

void print_line(std::string_view text) { put(shown(text) + "\n"); }

void end_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw failure(std::string("the output cannot be written: ") + std::strerror(errno));
}

}  // namespace troupe_tool
