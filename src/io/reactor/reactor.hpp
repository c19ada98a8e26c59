// reactor: carries out the I/O operations of one runtime. The scheduler sees it as a sched::poller.
//
// A backend implements start() and cancel(), and the calls of the poller: poll(), wait(), serve()
// and wake(). The interface has the form of completions: whatever the system offers, an
// operation is started once and completes once. Protocol: docs/protocols/io.md.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "io/buffers/buffer_pool.hpp"
#include "io/kernel/kernel.hpp"
#include "io/reactor/operation_counts.hpp"
#include "io/reactor/slot.hpp"
#include "sched/io_driver_slot.hpp"
#include "sched/poller.hpp"
#include "sched/runtime_host.hpp"
#include "troupe/base/platform.hpp"

namespace troupe::io {

class reactor : public sched::poller, public std::enable_shared_from_this<reactor> {
 public:
  reactor(kernel& calls, sched::runtime_host& host,
          buffer_pool_ptr leases = buffer_pool_ptr(new buffer_pool))
      : calls(calls),
        buffers(std::move(leases)),
        counted(host.is_observed() ? std::make_unique<operation_counts>() : nullptr),
        runtime_(host) {
    buffers->serve_workers_of(waiting);
  }

  // The runtime's reactor, which is made when it is first asked for. Throws io_error when the
  // system refuses, and std::bad_alloc.
  static reactor& of(sched::io_driver_slot& driver);
  // The reactor of the runtime whose handler runs on the calling thread; null elsewhere.
  static reactor* current();

  counts count() const noexcept override;
  bool awaits_outside() noexcept override;

  // start(), for callers: counts the operation while the runtime is observed.
  bool begin(operation& operation) noexcept {
    if (counted == nullptr) [[likely]]
      return start(operation);
    counted->begin(operation);
    const bool done = start(operation);
    if (done) counted->end(operation);
    return done;
  }
  // Starts the operation. Returns true when the operation is done; then `completed` is not called.
  // Returns false when the operation completes later, perhaps before start() returns.
  virtual bool start(operation& operation) noexcept = 0;
  // Asks for the end of the operation. The operation still completes, with its result or with
  // -ECANCELED. Does nothing when the operation is not pending.
  virtual void cancel(operation& operation) noexcept = 0;

  // Writes to a socket as many of at most 2 GiB of `bytes` as the system takes now. Returns that
  // number, or -errno when the system refuses, or 0 when the system takes nothing or the backend
  // does not try calls first. `whole`: if the system takes only a part, no other write comes before
  // the rest. The rest is the next write that is started with `done` > 0; give_up_rest() abandons
  // it.
  virtual std::int32_t write_at_once(slot& at, std::string_view bytes, bool whole) noexcept;
  virtual void give_up_rest(slot& at) noexcept;

  // Called in the turn of an operation that was notified as due. Returns true when the
  // operation is done. Returns false when it keeps waiting; it is then notified again.
  virtual bool carry_out(operation& operation) noexcept;
  // The same for an operation whose turn will not come: it ends with -ECANCELED.
  virtual void give_up(operation& operation) noexcept;

  // Makes an open descriptor of the caller's known to the reactor. Throws std::bad_alloc.
  slot& open(int fd, bool borrowed);
  // Operations that are pending there complete with -ECANCELED. The descriptor is closed, unless it
  // is borrowed.
  static void close(slot& at) noexcept;
  // The number of slots in use.
  std::size_t open_slots() const noexcept;

  // Runs one round of the workers' usual polling. For the end of the runtime, on a thread that
  // waits for operations to complete.
  void drive() noexcept;

  // Read by each operation; the door, which each look writes, is in a line before.
  alignas(base::line_bytes) kernel& calls;
  const buffer_pool_ptr buffers;
  const std::unique_ptr<operation_counts> counted;  // null unless the runtime is observed

 protected:
  // enter: an operation becomes pending. complete: an operation has completed.
  void enter(const operation& operation) noexcept;
  void complete(operation& operation) noexcept;
  // The second half of complete(): only the counts.
  void leave(bool weak) noexcept;

  // Tries an operation of a file, each of which has a slot of its own. Returns true when the
  // operation is done because it did not have to wait.
  bool try_file(operation& operation) noexcept;
  // Gives the operation to a thread of the runtime that may block.
  void start_aside(operation& operation) noexcept;
  // The second half of start_aside(). The operation that is pending in the slot may be gone by now.
  void hand_aside(slot& at) noexcept;

  // Called by close() with the slot's mutex held: the backend ends the operations that are pending
  // there. Those that have ended already are returned in `ended`, with their results. Returns false
  // when others end later; the backend then calls free_slot() after the last one.
  virtual bool abandon(slot& at, operation_queue& ended) noexcept = 0;
  // For a slot that is not used any more. With the last slot the reactor may be destroyed as well.
  void free_slot(slot& at) noexcept;

 private:
  class call_aside;
  void grow();
  sched::runtime_host& runtime_;
  TROUPE_INLINE void wait_for(std::int64_t more) noexcept {
    const auto next = waiting.add(sched::busy_share::current(), more);
    if (next != sched::waiting_operations::next::nothing) [[unlikely]]
      hold_or_release(next);
  }
  void enter_unshared(const operation& operation) noexcept;
  void hold_or_release(sched::waiting_operations::next next) noexcept;
  // How many operations had to wait that no busy worker has begun, which counts them in its share.
  // Each other worker has a shard, up to the number of shards; threads that are no workers have one
  // in common.
  struct alignas(base::line_bytes) shard {
    std::atomic<std::uint64_t> waits{0};
  };
  static constexpr std::size_t shards = 16;
  std::array<shard, shards> shards_;
  alignas(base::line_bytes) mutable std::mutex slots_mutex_;
  std::vector<std::unique_ptr<slot[]>> slots_;
  slot* free_ = nullptr;
  std::size_t in_use_ = 0;
  std::shared_ptr<reactor> self_;  // set while a slot is in use
};

}  // namespace troupe::io
