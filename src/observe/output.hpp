// output: writes text to a descriptor or a string. Signal handlers may use it for a descriptor:
// then nothing allocates.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>

#include "base/side_channels/bounded_write.hpp"
#include "base/text/hex.hpp"

namespace troupe::observe {

class output {
 public:
  explicit output(int fd) noexcept : fd_(fd) {}
  // Adds to the end of the string.
  explicit output(std::string& to) noexcept : text_(&to) {}
  output(const output&) = delete;
  output& operator=(const output&) = delete;
  ~output() { flush(); }

  output& operator<<(std::string_view text) noexcept {
    for (const char letter : text) put(letter);
    return *this;
  }
  output& operator<<(char letter) noexcept {
    put(letter);
    return *this;
  }
  output& operator<<(std::uint64_t number) noexcept {
    char digits[20];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    return *this << std::string_view(digits, static_cast<std::size_t>(end - digits));
  }

  // As a sink of base::json_writer.
  void append(std::string_view text) noexcept { *this << text; }

  output& signed_number(std::uint64_t bits) noexcept {
    const auto value = static_cast<std::int64_t>(bits);
    if (value >= 0) return *this << bits;
    return *this << '-' << (~bits + 1);
  }

  // Writes 1,234,567 thousandths as 1234.567.
  output& thousandths(std::uint64_t number) noexcept {
    *this << number / 1000 << '.';
    return digits(number % 1000, 3);
  }
  output& digits(std::uint64_t number, unsigned count) noexcept {
    std::uint64_t power = 1;
    for (unsigned i = 1; i < count; ++i) power *= 10;
    for (; power != 0; power /= 10) put(static_cast<char>('0' + number / power % 10));
    return *this;
  }
  // Writes text on one line: control characters become \x0a and the like. They would break a table,
  // and could control a terminal.
  output& visible(std::string_view text) noexcept {
    for (const char letter : text) {
      const auto code = static_cast<unsigned char>(letter);
      if (code >= 0x20 && code != 0x7f) {
        put(letter);
      } else {
        const auto digits = base::hex_of(code);
        *this << "\\x" << digits[0] << digits[1];
      }
    }
    return *this;
  }
  // Both write at least `width` characters, filled up with blanks: left() behind the text, right()
  // before the number.
  output& left(std::string_view text, std::size_t width) noexcept {
    *this << text;
    for (std::size_t i = text.size(); i < width; ++i) put(' ');
    return *this;
  }
  output& right(std::uint64_t number, std::size_t width) noexcept {
    std::size_t used = 1;
    for (std::uint64_t rest = number; rest >= 10; rest /= 10) ++used;
    for (; used < width; ++used) put(' ');
    return *this << number;
  }

  void flush() noexcept {
    if (text_ != nullptr) {
      append_to_text();
      return;
    }
    if (!failed_) failed_ = base::bounded_write(fd_, {buffer_, used_}, patience_ms).error != 0;
    used_ = 0;
  }
  // True when some of the text could not be written, for example because the disk is full, memory
  // has run out, or the reader of a pipe has taken nothing for 2 s.
  bool failed() const noexcept { return failed_; }

 private:
  void append_to_text() noexcept {
    try {
      text_->append(buffer_, used_);
    } catch (const std::bad_alloc&) {
      failed_ = true;
    }
    used_ = 0;
  }

  void put(char letter) noexcept {
    if (used_ == sizeof buffer_) flush();
    buffer_[used_++] = letter;
  }
  static constexpr int patience_ms = 2'000;
  const int fd_ = -1;
  std::string* const text_ = nullptr;
  bool failed_ = false;
  std::size_t used_ = 0;
  char buffer_[8192];
};

}  // namespace troupe::observe
