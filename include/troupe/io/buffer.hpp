// io_buffer: bytes that came from a stream, in memory of the runtime's that is leased.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

namespace troupe {

namespace io {
class buffer_pool;
class operation_suspension;
}  // namespace io

// What stream::read_some() gives. Move-only; the memory goes back to its runtime when this goes, on
// any thread, also when the stream or the runtime has gone before. One that is kept is no other
// reader's, but nobody waits for it: who finds none gets a new one. So hold it while its bytes are
// looked at, and copy what is to stay: a byte that is kept costs all of them.
//
// Example (declarations):
//     troupe::task<> echo_idly(troupe::tcp_stream peer) {
//       for (;;) {
//         const troupe::io_buffer came = co_await peer.read_some();  // while it waits the
//         connection has no buffer if (came.empty()) co_return; co_await
//         peer.write_all(came.text());
//       }
//     }
class io_buffer {
 public:
  // Bytes that one holds at most.
  static constexpr std::size_t bytes_max = 4080;  // with what the library notes beside them: a page

  io_buffer() = default;  // without memory
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

  // At the end of the stream there are none.
  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(data_), size_}; }
  // Gives the memory back before.
  void reset() noexcept {
    if (data_ != nullptr) give_back();
  }

 private:
  friend io::operation_suspension;
  io_buffer(io::buffer_pool& from, std::byte* data, std::size_t size) noexcept
      : from_(&from), data_(data), size_(size) {}
  void give_back() noexcept;

  io::buffer_pool* from_ = nullptr;  // it lives as long as one of its buffers is out
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace troupe
