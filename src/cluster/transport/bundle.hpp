// bundle: several messages to one subject, sent as one message. Its bytes: the mark of bundles, and
// for each message its length, 4 bytes, the lowest first, and the message. None of the messages
// expects an answer. Whatever bytes come, reading them ends, and takes no memory but views of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace troupe::cluster {

// No message of a node begins like this; a receiver that supports bundles answers a mark of windows
// with it.
inline constexpr std::string_view bundle_mark = "B\1";

class bundle_length {
 public:
  explicit bundle_length(std::uint32_t length) noexcept {
    for (std::size_t i = 0; i < raw_.size(); ++i)
      raw_[i] = static_cast<char>(length >> (8 * i) & 0xFF);
  }
  std::string_view bytes() const noexcept { return {raw_.data(), raw_.size()}; }

 private:
  std::array<char, 4> raw_;
};

// Reads the messages of a bundle; it ends at the first incomplete message.
class bundle_reader {
 public:
  // `bytes` begin with the mark.
  explicit bundle_reader(std::string_view bytes) noexcept
      : rest_(bytes.substr(bundle_mark.size())) {}
  std::optional<std::string_view> next() noexcept {
    constexpr std::size_t head = 4;
    if (rest_.size() < head) return std::nullopt;
    std::uint32_t size = 0;
    for (std::size_t i = 0; i < head; ++i)
      size |= std::uint32_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
    rest_.remove_prefix(head);
    if (size > rest_.size()) {
      rest_ = {};
      return std::nullopt;
    }
    const std::string_view message = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return message;
  }

 private:
  std::string_view rest_;
};

}  // namespace troupe::cluster
