// bundle: several messages to one subject, sent as one message. Its bytes: the mark of bundles, and
// for each message its length, 4 bytes, the lowest first, and the message. None of the messages
// expects an answer. Whatever bytes come, reading them ends, and takes no memory but views of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::cluster {

// No single message of a node begins like this; a receiver that supports bundles answers a mark of
// windows with it.
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

// Messages that wait to be sent, in the bytes of a bundle.
class waiting_bundle {
 public:
  std::size_t count() const noexcept { return count_; }
  bool empty() const noexcept { return count_ == 0; }
  // The bundle.
  std::string_view whole() const noexcept { return std::string_view(bytes_).substr(begin_); }
  // Its first message, by itself.
  std::string_view first() const noexcept { return *bundle_reader(whole()).next(); }
  std::size_t bytes_with(std::string_view message) const noexcept {
    return whole().size() + message.size() + sizeof(std::uint32_t);
  }

  // A message of less than 4 GiB. Throws std::bad_alloc; then nothing was added.
  void add(std::string_view message) {
    const bundle_length length(static_cast<std::uint32_t>(message.size()));
    bytes_.reserve(bytes_.size() + length.bytes().size() + message.size());
    bytes_ += length.bytes();
    bytes_ += message;
    ++count_;
  }
  // Drops so many, from the first on.
  void drop(std::size_t messages) noexcept {
    for (; messages != 0; --messages) drop_first();
  }

 private:
  // The mark of the rest overwrites the last two bytes of the first message.
  void drop_first() noexcept {
    begin_ += sizeof(std::uint32_t) + first().size();
    --count_;
    bundle_mark.copy(bytes_.data() + begin_, bundle_mark.size());
  }

  std::string bytes_{bundle_mark};
  std::size_t begin_ = 0;  // of the bundle without those that were dropped
  std::size_t count_ = 0;
};

}  // namespace troupe::cluster
