// memory_gate: how many bytes are in use, and how many jobs are set aside until fewer are
// (docs/protocols/lazies.md).
//
// A runner puts a job aside, then asks whether memory is still short; a thread that gives bytes
// back then asks whether jobs are aside.
// Invariants
//   G1  when a job is put aside while bytes are given back, at least one of the two sides sees the
//       other.
#pragma once

#include <cstddef>

#include "base/atomics.hpp"

namespace troupe::jobs {

template <class Atomics = base::std_atomics>
class memory_gate {
 public:
  explicit memory_gate(std::size_t limit) noexcept : limit_(limit) {}

  bool has_limit() const noexcept { return limit_ != 0; }
  // order: relaxed  a statistic
  std::size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }

  // Returns how many bytes are in use then.
  std::size_t take(std::size_t bytes) noexcept {
    return used_.fetch_add(bytes, std::memory_order_relaxed) + bytes;  // order: relaxed  a sum
  }
  // True when memory is not short any longer and jobs are aside: then the caller must call a
  // runner.
  bool give(std::size_t bytes) noexcept {
    // order: seq_cst  before the look at the jobs (G1); pairs with is_short
    const std::size_t before = used_.fetch_sub(bytes, std::memory_order_seq_cst);
    if (!has_limit() || before <= limit_ || before - bytes > limit_) return false;
    // order: seq_cst  after that (G1); pairs with put_aside
    return aside_.load(std::memory_order_seq_cst) != 0;
  }

  // One more job is aside.
  void put_aside() noexcept {
    // order: seq_cst  before is_short (G1); pairs with give
    aside_.fetch_add(1, std::memory_order_seq_cst);
  }
  // order: seq_cst  after put_aside (G1); pairs with give
  bool is_short() const noexcept {
    return has_limit() && used_.load(std::memory_order_seq_cst) > limit_;
  }
  // order: relaxed  a hint
  void took_up() noexcept { aside_.fetch_sub(1, std::memory_order_relaxed); }
  // order: relaxed  a hint: the runner that has put one aside sees its own count
  std::size_t aside() const noexcept { return aside_.load(std::memory_order_relaxed); }
  bool some_aside() const noexcept { return aside() != 0; }

 private:
  const std::size_t limit_;  // bytes; 0: none
  typename Atomics::template atomic<std::size_t> used_{0};
  typename Atomics::template atomic<std::size_t> aside_{0};
};

}  // namespace troupe::jobs
