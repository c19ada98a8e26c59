// ciphertext: a block for the encrypted bytes on the wire. Unused blocks are kept for other
// connections: an idle connection has no block, and a busy connection allocates none.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace troupe::tls {

// Space for the largest record (16,384 bytes and the overhead of encryption), and for one or two
// tickets in front of it.
inline constexpr std::size_t block_bytes = 17 * 1024;

// Thread: one at a time.
class ciphertext {
 public:
  ciphertext() noexcept {}
  ciphertext(ciphertext&& other) noexcept { swap(other); }
  ciphertext& operator=(ciphertext&& other) noexcept {
    ciphertext taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~ciphertext() { release(); }

  bool has_block() const noexcept { return data_ != nullptr; }
  bool empty() const noexcept { return begin_ == end_; }
  std::string_view rest() const noexcept {
    return {reinterpret_cast<const char*>(data_.get()) + begin_, end_ - begin_};
  }
  void advance(std::size_t bytes) noexcept { begin_ += bytes; }
  // Appends bytes; allocates more than a block if necessary. Throws std::bad_alloc.
  void append(const void* bytes, std::size_t count);
  // Returns an empty block, to be filled from its beginning. Throws std::bad_alloc.
  std::span<std::byte> room();
  void filled(std::size_t bytes) noexcept {
    begin_ = 0;
    end_ = bytes;
  }
  // Drops the content and returns the block to the pool.
  void release() noexcept;
  void swap(ciphertext& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
  }

 private:
  void take();
  std::unique_ptr<std::byte[]> data_;
  std::size_t capacity_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace troupe::tls
