// buffer_pool: the memory of the leased buffers of a runtime. Free buffers wait in it; the one that
// was given back last is used first.
//
// The pool lives until its reactor has let go of it and all its buffers are returned. No read waits
// for a buffer: when none is free, one is allocated. The number of free buffers kept here is
// bounded; the number of leased ones is up to their holders.
//
// A worker of the runtime has a magazine of free buffers and a count of its own: a lease that it
// takes and gives back changes no word that other workers write. A buffer_ring, whose free buffers
// the system takes, has no magazines.
// Threads: any. The mutex guards the common list. The workers have ended before let_go().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "sched/waiting_operations.hpp"
#include "troupe/base/small_mutex.hpp"
#include "troupe/io/buffer.hpp"

namespace troupe::io {

class buffer_pool {
 public:
  static constexpr std::size_t buffer_bytes = io_buffer::bytes_max;
  // free buffers; further ones are returned to the heap
  static constexpr std::size_t kept_max = 256;
  // free buffers of one worker, beside those
  static constexpr unsigned own_max = 8;

  buffer_pool() = default;
  buffer_pool(const buffer_pool&) = delete;
  buffer_pool& operator=(const buffer_pool&) = delete;
  // Called by the reactor as its first use of the pool, and as its last one.
  void serve_workers_of(const sched::waiting_operations& reactor) noexcept {
    // order: relaxed  only compared with
    workers_.store(&reactor, std::memory_order_relaxed);
  }
  void let_go() noexcept;

  // Returns null when there is no memory.
  std::byte* take() noexcept;
  // The pool may be destroyed by this call.
  void give(std::byte* data) noexcept;

  // How many buffers are leased, or have been given to an operation.
  std::size_t leased() const noexcept;
  // Each worker counts its last leases apart, so that workers share no word for them.
  static constexpr std::int64_t counted_apart_max = 16;
  // The same, without up to `counted_apart_max` leases of each other worker. Cost: two loads.
  std::size_t nearly_leased() noexcept;

 protected:
  // The caller holds the mutex. Returns true when the derived class keeps the buffer. Such a buffer
  // counts as given back.
  virtual bool keep(std::byte*) noexcept { return false; }
  static std::byte* make() noexcept;
  static void destroy(std::byte* data) noexcept;

  // order: relaxed  a count, changed under the mutex or by a worker
  void count(std::int64_t change) noexcept { leased_.fetch_add(change, std::memory_order_relaxed); }
  // Called by the constructor of a derived class that keeps buffers.
  void have_no_magazines() noexcept { has_magazines_ = false; }
  virtual ~buffer_pool();
  mutable base::small_mutex mutex_;

 private:
  struct free_one {
    free_one* next;
  };
  struct magazine {
    free_one* free = nullptr;
    unsigned kept = 0;
    // leased by its worker, less those given back by it; added to leased_ when it is large
    std::atomic<std::int64_t> leased{0};
    magazine* next = nullptr;
  };
  // The magazine of the calling thread, if that is a worker of the runtime; else null.
  magazine* own() noexcept;
  magazine* claim(sched::waiting_operations::share& worker) noexcept;
  void count_own(magazine& own, std::int64_t change) noexcept;

  bool has_magazines_ = true;
  // null after let_go(): another reactor may lie at that address then
  std::atomic<const sched::waiting_operations*> workers_{nullptr};
  std::atomic<magazine*> magazines_{nullptr};
  free_one* free_ = nullptr;
  std::size_t kept_ = 0;
  std::atomic<std::int64_t> leased_{0};
  bool let_go_ = false;
};

struct lets_go {
  void operator()(buffer_pool* pool) const noexcept { pool->let_go(); }
};
using buffer_pool_ptr = std::unique_ptr<buffer_pool, lets_go>;

}  // namespace troupe::io
