// buffer_pool: the memory of the leased buffers of a runtime. Free buffers wait in it; the one that
// was given back last is used first.
//
// The pool lives until its reactor has let go of it and all its buffers have come back. No read
// waits for a buffer: when none is free, one is allocated. The number of free buffers kept here is
// bounded; the number of leased ones is up to their holders.
// Threads: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

#include "troupe/base/small_mutex.hpp"
#include "troupe/io/buffer.hpp"

namespace troupe::io {

class buffer_pool {
 public:
  static constexpr std::size_t buffer_bytes = io_buffer::bytes_max;
  // free buffers; further ones are returned to the heap
  static constexpr std::size_t kept_max = 256;

  buffer_pool() = default;
  buffer_pool(const buffer_pool&) = delete;
  buffer_pool& operator=(const buffer_pool&) = delete;
  // Called by the reactor, as its last use of the pool.
  void let_go() noexcept;

  // Returns null when there is no memory.
  std::byte* take() noexcept;
  // The pool may be destroyed by this call.
  void give(std::byte* data) noexcept;

  // How many buffers are leased, or have been given to an operation.
  // order: relaxed  a count; publishes nothing
  std::size_t leased() const noexcept { return leased_.load(std::memory_order_relaxed); }

 protected:
  // The caller holds the mutex. Returns true when the derived class keeps the buffer. Such a buffer
  // counts as given back.
  virtual bool keep(std::byte*) noexcept { return false; }
  static std::byte* make() noexcept;
  static void destroy(std::byte* data) noexcept;

  // order: relaxed (both)  a count, changed under the mutex
  void count(int change) noexcept {
    leased_.store(leased_.load(std::memory_order_relaxed) + static_cast<std::size_t>(change),
                  std::memory_order_relaxed);
  }
  virtual ~buffer_pool();
  mutable base::small_mutex mutex_;

 private:
  struct free_one {
    free_one* next;
  };
  free_one* free_ = nullptr;
  std::size_t kept_ = 0;
  std::atomic<std::size_t> leased_{0};
  bool let_go_ = false;
};

struct lets_go {
  void operator()(buffer_pool* of) const noexcept { of->let_go(); }
};
using buffer_pool_ptr = std::unique_ptr<buffer_pool, lets_go>;

}  // namespace troupe::io
