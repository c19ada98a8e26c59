// io_buffer: bytes read from a stream, in memory that is leased from the runtime.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

namespace troupe {

namespace io {
class buffer_pool;
class operation_suspension;
}  // namespace io

// The result of stream::read_some(). Move-only. The destructor returns the memory to its runtime,
// on any thread, even after the stream or the runtime has ended. No reader waits for a buffer that
// you keep: if none is free, a new one is allocated. Hold it while you use its bytes, and copy the
// bytes that you need later: one kept byte keeps the whole buffer.
//
// Example (declarations):
//     troupe::task<> echo_idly(troupe::tcp_stream peer) {
//       for (;;) {
//         // while it waits the connection has no buffer
//         const troupe::io_buffer came = co_await peer.read_some();
//         if (came.empty()) co_return;
//         co_await peer.write_all(came.text());
//       }
//     }
class io_buffer {
 public:
  // The most bytes that one buffer holds.
  static constexpr std::size_t bytes_max = 4080;  // a page, together with the library's own bytes

  io_buffer() = default;  // no memory
  io_buffer(io_buffer&& other) noexcept
      : from_(other.from_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  io_buffer& operator=(io_buffer&& other) noexcept {
    if (this == &other) return *this;
    reset();
    from_ = other.from_;
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  ~io_buffer() { reset(); }

  // True at the end of the stream.
  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(data_), size_}; }
  // Returns the memory now.
  void reset() noexcept {
    if (data_ != nullptr) give_back();
  }

 private:
  friend io::operation_suspension;
  io_buffer(io::buffer_pool& from, std::byte* data, std::size_t size) noexcept
      : from_(&from), data_(data), size_(size) {}
  void give_back() noexcept;

  io::buffer_pool* from_ = nullptr;  // lives as long as any of its buffers is leased
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace troupe
