// nghttp2_memory: gives nghttp2 its memory from the pools of coroutine frames. They keep more freed
// blocks of one size than glibc's seven, and a request of HTTP/2 takes and frees about ten.
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "troupe/task/task.hpp"

namespace troupe::http::h2 {

// The functions by which the nghttp2 of one session takes and frees memory. Each block begins with
// its size, which nghttp2 does not pass when it frees a block. It must outlive the session.
class nghttp2_memory {
 public:
  nghttp2_memory() noexcept = default;
  nghttp2_memory(const nghttp2_memory&) = delete;

  nghttp2_mem* functions() noexcept { return &functions_; }
  // The memory that nghttp2 holds now.
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t head_bytes = alignof(std::max_align_t);

  static void* allocate(std::size_t bytes, void* self) noexcept {
    if (bytes > SIZE_MAX - head_bytes) return nullptr;
    try {
      void* const block = tasks::allocate_frame(bytes + head_bytes);
      ::new (block) std::size_t(bytes + head_bytes);
      static_cast<nghttp2_memory*>(self)->bytes_ += bytes + head_bytes;
      return static_cast<char*>(block) + head_bytes;
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  static void deallocate(void* at, void* self) noexcept {
    if (at == nullptr) return;
    static_cast<nghttp2_memory*>(self)->bytes_ -= block_bytes(at);
    tasks::deallocate_frame(block_of(at), block_bytes(at));
  }
  static void* allocate_zeroed(std::size_t count, std::size_t bytes, void* self) noexcept {
    if (bytes != 0 && count > SIZE_MAX / bytes) return nullptr;
    void* const block = allocate(count * bytes, self);
    return block == nullptr ? nullptr : std::memset(block, 0, count * bytes);
  }
  static void* reallocate(void* at, std::size_t bytes, void* self) noexcept {
    if (at == nullptr) return allocate(bytes, self);
    void* const block = allocate(bytes, self);
    if (block == nullptr) return nullptr;
    std::memcpy(block, at, std::min(bytes, block_bytes(at) - head_bytes));
    deallocate(at, self);
    return block;
  }

  static void* block_of(void* at) noexcept { return static_cast<char*>(at) - head_bytes; }
  static std::size_t block_bytes(void* at) noexcept {
    return *std::launder(static_cast<std::size_t*>(block_of(at)));
  }

  nghttp2_mem functions_{this, &allocate, &deallocate, &allocate_zeroed, &reallocate};
  std::size_t bytes_ = 0;
};

}  // namespace troupe::http::h2
