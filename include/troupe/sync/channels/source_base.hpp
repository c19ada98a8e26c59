// source_base: the state that the handles of one broadcast, or of one watch, share apart from the
// values. For the library's own use.
// Threads: any. The mutex guards the list and the members of the derived class.
#pragma once

#include "troupe/base/language.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

#include "troupe/base/small_mutex.hpp"
#include "troupe/sync/channels/waiter.hpp"

namespace troupe::sync {

class source_base {
 public:
  source_base() = default;
  source_base(const source_base&) = delete;
  source_base& operator=(const source_base&) = delete;

  // Wakes all that wait; they find the source closed.
  void close() noexcept;
  // order: relaxed  a hint; written under the mutex
  bool is_closed() const noexcept { return closed_.load(std::memory_order_relaxed); }
  // The handles that can write are counted; without them the source is closed.
  void add_writer() noexcept;
  void drop_writer() noexcept;

  // Takes the waiter out of the list. False: it is being woken.
  bool withdraw(waiter& party) noexcept {
    std::lock_guard guard(mutex_);
    return waiting_.withdraw(party);
  }

 protected:
  ~source_base() = default;

  mutable base::small_mutex mutex_;
  waiter_list waiting_;
  std::atomic<bool> closed_{false};

 private:
  std::atomic<std::uint32_t> writers_{0};
};

// A handle that can write, counted.
template <class Pointer>
class writer_handle {
 public:
  explicit writer_handle(Pointer state) noexcept : state_(std::move(state)) {
    state_->add_writer();
  }
  writer_handle(const writer_handle& other) noexcept : state_(other.state_) {
    if (state_ != nullptr) state_->add_writer();
  }
  writer_handle(writer_handle&&) noexcept = default;
  writer_handle& operator=(writer_handle other) noexcept {
    state_.swap(other.state_);
    return *this;
  }
  ~writer_handle() {
    if (state_ != nullptr) state_->drop_writer();
  }
  friend bool operator==(const writer_handle&, const writer_handle&) = default;

 protected:
  Pointer state_;
};

}  // namespace troupe::sync
