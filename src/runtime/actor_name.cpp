#include <algorithm>
#include <cstddef>
#include <string_view>

#include "troupe/runtime/options.hpp"

namespace troupe {
namespace {

bool follows(char byte) noexcept { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

actor_name::actor_name(std::string_view text) noexcept {
  std::size_t bytes = std::min(text.size(), bytes_max);
  // A character of UTF-8 is kept whole, or not at all.
  while (bytes < text.size() && bytes != 0 && follows(text[bytes])) --bytes;
  std::copy_n(text.begin(), bytes, text_);
  bytes_ = static_cast<std::uint8_t>(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    const auto code = static_cast<unsigned char>(text_[i]);
    const bool is_control = code < 0x20 || code == 0x7F;
    if (is_control) text_[i] = ' ';
    // U+0080 to U+009F: terminals may take them for commands
    if (code == 0xC2 && i + 1 < bytes && static_cast<unsigned char>(text_[i + 1]) < 0xA0)
      text_[i] = text_[i + 1] = ' ';
  }
}

}  // namespace troupe
