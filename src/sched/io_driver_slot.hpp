// io_driver_slot: holds a runtime's poller, from its first I/O operation on.
//
// The runtime makes the slot and does not depend on I/O; the I/O layer, which need not be linked
// into the program, fills it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "sched/executor.hpp"
#include "sched/poller.hpp"
#include "sched/runtime_host.hpp"

namespace troupe::sched {

class simulated;

class io_driver_slot {
 public:
  explicit io_driver_slot(runtime_host& host) noexcept : runtime(host) {}

  runtime_host& runtime;
  // Set by the runtime before the first turn.
  std::uint8_t choice = 0;  // troupe::io_backend
  policy* pool = nullptr;
  simulated* simulation = nullptr;  // the pool, under the simulated policy; else null

  // order: acquire  sees the complete poller; pairs with take/release
  poller* taken() const noexcept { return taken_.load(std::memory_order_acquire); }

  // The poller; the first caller makes it. Any thread. Passes the exceptions of `make` through.
  template <class Make>
  poller& take(Make make) {
    if (poller* there = taken()) return *there;
    std::lock_guard lock(mutex_);
    if (poller* there = taken()) return *there;
    owner_ = make();
    pool->attach(*owner_);
    // order: release  publishes the poller; pairs with taken/acquire
    taken_.store(owner_.get(), std::memory_order_release);
    return *owner_;
  }

  // At the runtime's end, when none of its threads runs any longer.
  void give_up() noexcept {
    if (owner_ != nullptr) owner_->retire();
    owner_.reset();
  }

 private:
  std::mutex mutex_;
  std::atomic<poller*> taken_{nullptr};
  std::shared_ptr<poller> owner_;  // streams that outlive the runtime also hold it
};

}  // namespace troupe::sched
