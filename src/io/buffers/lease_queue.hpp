// lease_queue: filled buffers that no read has asked for yet, in order. The note of each buffer
// lies in its own memory, behind its bytes. So nothing is allocated when a buffer comes, and none
// can be lost.
// Threads: one at a time; the mutex of the owner guards it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "io/buffers/buffer_pool.hpp"

namespace troupe::io {

class lease_queue {
 public:
  bool empty() const noexcept { return first_ == nullptr; }

  void push(std::byte* data, std::size_t bytes) noexcept {
    ::new (data + buffer_pool::buffer_bytes) note{nullptr, 0, static_cast<std::uint32_t>(bytes)};
    (first_ == nullptr ? first_ : note_of(last_).next) = data;
    last_ = data;
  }

  // Returns the first buffer, which the caller owns from here on, and sets `bytes` to the number of
  // its bytes. The queue must not be empty.
  std::byte* take(std::size_t& bytes) noexcept {
    std::byte* const data = first_;
    const note one = note_of(data);
    first_ = one.next;
    bytes = one.end - one.begin;
    if (one.begin != 0) std::memmove(data, data + one.begin, bytes);
    return data;
  }

  // Copies as many bytes of the first buffer as fit, and returns how many. An empty buffer goes
  // back to the pool.
  std::size_t copy(std::byte* to, std::size_t room, buffer_pool& from) noexcept {
    std::byte* const data = first_;
    note& one = note_of(data);
    const std::size_t bytes = std::min<std::size_t>(room, one.end - one.begin);
    std::memcpy(to, data + one.begin, bytes);
    one.begin += static_cast<std::uint32_t>(bytes);
    if (one.begin == one.end) {
      first_ = one.next;
      from.give(data);
    }
    return bytes;
  }

 private:
  struct note {
    std::byte* next;
    std::uint32_t begin, end;
  };
  static_assert(sizeof(note) <= buffer_pool::whole_bytes - buffer_pool::buffer_bytes &&
                buffer_pool::buffer_bytes % alignof(note) == 0);
  static note& note_of(std::byte* data) noexcept {
    return *std::launder(reinterpret_cast<note*>(data + buffer_pool::buffer_bytes));
  }
  std::byte* first_ = nullptr;
  std::byte* last_ = nullptr;
};

}  // namespace troupe::io
