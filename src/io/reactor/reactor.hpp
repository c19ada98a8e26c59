// reactor: carries out the operations of one runtime. The I/O layer's side of sched::poller.
//
// The contract of a backend: start, cancel, and what the poller asks: look, wait, dispatch, wake.
// All of them are shaped by completions: whatever the system offers, an operation is given to it
// and comes back once. Protocol: docs/protocols/io.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "io/buffers/buffer_pool.hpp"
#include "io/reactor/kernel.hpp"
#include "io/reactor/slot.hpp"
#include "sched/io_driver_slot.hpp"
#include "sched/poller.hpp"

namespace troupe::io {

// What a reactor has of its runtime.
struct runtime_services {
  std::function<void(bool)> keep_alive;  // the slot's, as the next
  std::function<void(std::move_only_function<void()>)> aside;
};

class reactor : public sched::poller, public std::enable_shared_from_this<reactor> {
 public:
  reactor(kernel& calls, runtime_services of,
          buffer_pool_ptr leases = buffer_pool_ptr(new buffer_pool))
      : calls(calls), buffers(std::move(leases)), services_(std::move(of)) {}

  // The runtime's own, made when it is first asked for. Throws io_error when the system refuses,
  // std::bad_alloc.
  static reactor& of(sched::io_driver_slot& driver);
  // Of the runtime whose handler the calling thread runs; null elsewhere.
  static reactor* current();

  counts count() const noexcept override;

  // Gives the operation to the system. True: it is done, and `completed` is not called. False: it
  // comes later, perhaps before this returns.
  virtual bool start(operation& one) noexcept = 0;
  // Asks for its end. It completes all the same: by what it has come to, or with -ECANCELED.
  // Nothing when it is not pending.
  virtual void cancel(operation& one) noexcept = 0;

  // To a socket: what the system takes here and now of at most 2 GiB; -errno when it refuses. 0
  // when it takes nothing, and where the backend does not try calls first. `whole`: when a part is
  // taken the rest follows, the next write that is started with something done, and no other write
  // comes between; or give_up_rest().
  virtual std::int32_t write_at_once(slot& at, std::string_view bytes, bool whole) noexcept;
  virtual void give_up_rest(slot& at) noexcept;

  // In the turn of an operation that was told that it is due: true when it is done. False: it waits
  // on, and is told again.
  virtual bool carry_out(operation& one) noexcept;
  // The same where nothing is to be done any more: it ends with -ECANCELED.
  virtual void give_up(operation& one) noexcept;

  // Waits until a descriptor is closed here: for who has learnt that the process has no more.
  // `offset`: closed_so_far() before. Ended as operations are, but by cancel_room().
  bool start_room(operation& one) noexcept;
  void cancel_room(operation& one) noexcept;
  std::int64_t closed_so_far() const noexcept;

  // An open descriptor of the caller's becomes known here. Throws std::bad_alloc.
  slot& open(int fd, bool borrowed);
  // What is pending there completes with -ECANCELED, and the descriptor is closed, unless it is
  // borrowed.
  static void close(slot& at) noexcept;
  // How many slots are in use.
  std::size_t open_slots() const noexcept;

  // At the runtime's end, on a thread that waits for operations to complete: one round of what
  // workers do else.
  void drive() noexcept;

  kernel& calls;
  const buffer_pool_ptr buffers;

 protected:
  // An operation becomes pending, and has completed.
  void enter(const operation& one) noexcept;
  void complete(operation& one) noexcept;
  // The second half of that alone.
  void leave(bool weak) noexcept;

  // Of operations of files, each of which has a slot of its own. True: done, since nothing had to
  // be waited for.
  bool try_file(operation& one) noexcept;
  // To a thread of the runtime's that may block.
  void start_aside(operation& one) noexcept;
  // The second half of that; the operation that is pending there may be gone by now.
  void hand_aside(slot& at) noexcept;

  // In close(), the slot's mutex held: the backend ends what is pending there. What it has ended by
  // then comes back in `ended`, with its result. False: the rest comes later, and the backend calls
  // free_slot() after it.
  virtual bool abandon(slot& at, operation_queue& ended) noexcept = 0;
  // The slot is in nobody's use any more. With the last one the reactor may go, too.
  void free_slot(slot& at) noexcept;

 private:
  class call_aside;
  void grow();
  void count_closed() noexcept;
  const runtime_services services_;
  std::atomic<std::int64_t> in_flight_{0};
  std::atomic<std::uint64_t> waits_{0};
  mutable std::mutex room_mutex_;
  operation_queue room_;  // those that wait for it
  std::int64_t closed_ = 0;
  mutable std::mutex slots_mutex_;
  std::vector<std::unique_ptr<slot[]>> slots_;
  slot* free_ = nullptr;
  std::size_t in_use_ = 0;
  std::shared_ptr<reactor> self_;  // while one is in use
};

}  // namespace troupe::io
