// input: received bytes that are not used up yet, in one piece. They lie in memory of its own or in
// a leased buffer.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "troupe/io/buffer.hpp"

namespace troupe::http {

class input {
 public:
  std::string_view view() const noexcept { return {data_ + begin_, end_ - begin_}; }
  bool empty() const noexcept { return begin_ == end_; }
  void use(std::size_t bytes) noexcept { begin_ += bytes; }
  std::size_t capacity() const noexcept { return capacity_; }

  // Returns space for at least `least` more bytes. Bytes that were used up are dropped, and views
  // into the others become invalid.
  std::span<char> room(std::size_t least) {
    if (begin_ == end_) begin_ = end_ = 0;
    if (capacity_ - end_ < least) {
      const std::size_t kept = end_ - begin_;
      if (capacity_ - kept >= least) {
        std::memmove(data_, data_ + begin_, kept);
      } else {
        std::size_t wanted = capacity_ == 0 ? first_bytes : capacity_ * 2;
        while (wanted - kept < least) wanted *= 2;
        auto larger = std::make_unique_for_overwrite<char[]>(wanted);
        if (kept != 0) std::memcpy(larger.get(), data_ + begin_, kept);
        lease_.reset();
        own_ = std::move(larger);
        data_ = own_.get();
        capacity_ = wanted;
      }
      begin_ = 0;
      end_ = kept;
    }
    return {data_ + end_, capacity_ - end_};
  }
  // Drops everything and takes `came` as the only content.
  void adopt(io_buffer&& came) noexcept {
    release();
    if (came.empty()) return;
    end_ = came.size();
    lease_ = std::move(came);
    data_ = reinterpret_cast<char*>(lease_.bytes().data());
    capacity_ = io_buffer::bytes_max;
  }
  void came(std::size_t bytes) noexcept { end_ += bytes; }
  void put(std::string_view bytes) {
    if (bytes.empty()) return;
    std::memcpy(room(bytes.size()).data(), bytes.data(), bytes.size());
    came(bytes.size());
  }
  void release() noexcept {
    own_.reset();
    lease_.reset();
    data_ = nullptr;
    begin_ = end_ = capacity_ = 0;
  }

 private:
  static constexpr std::size_t first_bytes = 4096;
  std::unique_ptr<char[]> own_;
  io_buffer lease_;
  char* data_ = nullptr;  // points into one of these two
  std::size_t begin_ = 0, end_ = 0, capacity_ = 0;
};

}  // namespace troupe::http
