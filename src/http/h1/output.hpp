// output: bytes that are to be sent. It keeps its memory, or leaves it to the next output on the
// same thread.
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
  // Adds `bytes` bytes, which the caller then writes. shrink() takes back the last of them.
  char* grow(std::size_t bytes) {
    char* const at = room(bytes);
    size_ += bytes;
    return at;
  }
  void shrink(std::size_t bytes) noexcept { size_ -= bytes; }
  // Takes back everything behind the first `size` bytes.
  void cut(std::size_t size) noexcept { size_ = size; }

  std::string_view view() const noexcept { return {data_.get(), size_}; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  std::size_t capacity() const noexcept { return capacity_; }
  // Keeps the memory, unless that is larger than kept_bytes_max.
  void clear() noexcept {
    size_ = 0;
    if (capacity_ <= kept_bytes_max) return;
    data_.reset();
    capacity_ = 0;
  }
  // Gives the memory to the next output of this thread. Call it in a turn, on an empty output that
  // is not needed for a while.
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
