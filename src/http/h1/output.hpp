// output: bytes that are to be sent; keeps its memory, or leaves it to the next one on the same
// thread.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

namespace troupe::http {

class output {
 public:
  void add(std::string_view text) {
    if (text.empty()) return;
    std::memcpy(room(text.size()), text.data(), text.size());
    size_ += text.size();
  }
  void add(std::uint64_t number) {
    char* const at = room(20);
    size_ += static_cast<std::size_t>(std::to_chars(at, at + 20, number).ptr - at);
  }
  // So many bytes, to be written to; the last of them may be taken back.
  char* grow(std::size_t bytes) {
    char* const at = room(bytes);
    size_ += bytes;
    return at;
  }
  void shrink(std::size_t bytes) noexcept { size_ -= bytes; }
  // What was added behind `size` is taken back.
  void cut(std::size_t size) noexcept { size_ = size; }

  std::string_view view() const noexcept { return {data_.get(), size_}; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  std::size_t capacity() const noexcept { return capacity_; }
  // Large memory is given back.
  void clear() noexcept {
    size_ = 0;
    if (capacity_ <= kept_bytes_max) return;
    data_.reset();
    capacity_ = 0;
  }
  // When it is empty, and is not needed for a while. In a turn.
  void rest() noexcept;

 private:
  char* room(std::size_t bytes) {
    if (capacity_ - size_ < bytes) enlarge(bytes);
    return data_.get() + size_;
  }
  void enlarge(std::size_t bytes);

  static constexpr std::size_t first_bytes = 1024, kept_bytes_max = 64 * 1024;
  std::unique_ptr<char[]> data_;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace troupe::http
