// buffer_ring: a pool whose free buffers lie in a ring, from which io_uring takes one when bytes
// have arrived (Linux 5.19 and later).
//
// The ring begins empty. A read that finds no buffer in it waits until the socket can be read, and
// then takes a buffer of the pool, as with the other backends. Buffers that are given back go into
// the ring. The ring therefore grows to the number of buffers that were in use at a time, and no
// reader waits for another reader's buffer.
// Invariants
//   B1  a buffer is in one place: lent to the system under one number, in the pool, or leased.
//
// The pool owns the buffers that the system has, and the memory of the ring. Both outlive the
// io_uring, even if a lease is held longer.
#pragma once

#include <liburing.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "base/invariant.hpp"
#include "io/buffers/buffer_pool.hpp"

namespace troupe::io {

class buffer_ring final : public buffer_pool {
 public:
  static constexpr int group = 0;

  // `entries`: how many numbers there are; a power of 2, or 0 for no ring. Throws std::bad_alloc.
  explicit buffer_ring(unsigned entries)
      : shared_(make_shared_memory(entries)), lent_(entries, nullptr) {
    have_no_magazines();
    free_.reserve(entries);
  }
  ~buffer_ring() override {
    for (std::byte* buffer : lent_) {
      if (buffer != nullptr) destroy(buffer);
    }
  }

  // Returns false where the system has no such rings.
  bool open(io_uring& with) noexcept {
    const auto entries = static_cast<unsigned>(lent_.size());
    if (entries == 0) return false;
    io_uring_buf_ring_init(shared_.get());
    io_uring_buf_reg wanted{};
    wanted.ring_addr = reinterpret_cast<std::uint64_t>(shared_.get());
    wanted.ring_entries = entries;
    wanted.bgid = group;
    if (io_uring_register_buf_ring(&with, &wanted, 0) != 0) return false;
    for (unsigned i = entries; i-- > 0;) free_.push_back(static_cast<std::uint16_t>(i));
    return true;
  }

  // The system has filled the buffer with this number: it is leased from here on.
  std::byte* taken(unsigned number) noexcept {
    const std::lock_guard lock(mutex_);
    TROUPE_INVARIANT(lent_[number] != nullptr, "B1");
    count(1);
    free_.push_back(static_cast<std::uint16_t>(number));
    return std::exchange(lent_[number], nullptr);
  }

 protected:
  bool keep(std::byte* data) noexcept override {
    if (free_.empty()) return false;
    const std::uint16_t number = free_.back();
    free_.pop_back();
    TROUPE_INVARIANT(lent_[number] == nullptr, "B1");
    lent_[number] = data;
    io_uring_buf_ring_add(shared_.get(), data, buffer_bytes, number,
                          io_uring_buf_ring_mask(static_cast<unsigned>(lent_.size())), 0);
    io_uring_buf_ring_advance(shared_.get(), 1);
    return true;
  }

 private:
  struct freed {
    void operator()(io_uring_buf_ring* ring) const noexcept { std::free(ring); }
  };
  using memory = std::unique_ptr<io_uring_buf_ring, freed>;
  static memory make_shared_memory(unsigned entries) {
    constexpr std::size_t page_bytes = 4096;
    const std::size_t pages = entries * sizeof(io_uring_buf) / page_bytes + 1;
    memory made(
        static_cast<io_uring_buf_ring*>(std::aligned_alloc(page_bytes, pages * page_bytes)));
    if (made == nullptr) throw std::bad_alloc();
    return made;
  }

  memory shared_;
  std::vector<std::byte*> lent_;     // by number
  std::vector<std::uint16_t> free_;  // numbers under which the system has no buffer
};

}  // namespace troupe::io
