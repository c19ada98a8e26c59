// operation_counts: how many operations of each kind a runtime has carried out, while it is
// observed. Counts are exact. Times, from the start of an operation to its end, are taken of
// samples.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "observe/counting/by_thread.hpp"
#include "observe/counting/histogram.hpp"
#include "observe/sample_stride.hpp"
#include "troupe/base/platform.hpp"
#include "troupe/io/operations/operation.hpp"

namespace troupe::io {

const char* name_of(action opcode) noexcept;

// The counts of one kind of operation by one thread.
struct operation_count {
  observe::counter begun;              // numbers them for the samples; not those done at once
  observe::counter done;               // all that have ended
  observe::counter bytes;              // transferred
  observe::counter errors, cancelled;  // of those that are done
  observe::sample_stride stride;       // of operations that are timed
  observe::counter samples;
  observe::histogram took;  // ticks
};

class thread_operations {
 public:
  thread_operations() = default;
  thread_operations(const thread_operations&) = delete;
  thread_operations& operator=(const thread_operations&) = delete;
  ~thread_operations();

  // The thread's own. Null when memory has run out.
  operation_count* of(action opcode) noexcept {
    auto& place = kinds_[static_cast<std::size_t>(opcode)];
    // order: relaxed  the thread's own
    operation_count* const known = place.load(std::memory_order_relaxed);
    return known != nullptr ? known : make(place);
  }
  // Thread: any.
  template <class Look>
  void for_each_kind(Look look) const {
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      // order: acquire  sees the complete count; pairs with of/release
      const operation_count* const count = kinds_[i].load(std::memory_order_acquire);
      if (count != nullptr) look(static_cast<action>(i), *count);
    }
  }

 private:
  TROUPE_NOINLINE static operation_count* make(std::atomic<operation_count*>& place) noexcept;

  std::array<std::atomic<operation_count*>, actions> kinds_{};
};

// Thread: any.
class operation_counts : public observe::by_thread<thread_operations> {
 public:
  // Just before an operation starts, and when it has ended.
  void begin(operation& operation) noexcept;
  void end(const operation& operation) noexcept;
  // A write that was tried without an operation has returned this.
  void add_write(std::ptrdiff_t result) noexcept;
};

}  // namespace troupe::io
