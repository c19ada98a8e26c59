// read_write_lock: who may be inside: any number of readers, or one writer. Those who wait hold no thread. The library's own; users
// meet guarded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

namespace troupe::sharing {

enum class access : std::uint8_t { read, write };

// Threads: any. First come, first served: nobody overtakes one who waits, so neither readers nor writers starve.
class read_write_lock {
 public:
  // One who waits for the other side to leave. Called once, and never with the lock's mutex.
  class waiter {
   public:
    virtual ~waiter() = default;
    virtual bool gave_up() const noexcept = 0;
    virtual void enter() noexcept = 0;
  };

  bool try_enter(access how) noexcept;
  // True: inside. Else `waiting` was taken, and is called when it is inside. Throws std::bad_alloc.
  bool enter(access how, std::unique_ptr<waiter>& waiting);
  void leave(access how) noexcept;

 private:
  struct queued {
    access how;
    std::unique_ptr<waiter> who;
  };
  bool enter_locked(access how) noexcept;

  std::mutex mutex_;
  std::size_t readers_ = 0;
  bool writer_ = false;
  std::deque<queued> waiting_;
};

// One who is inside; leaves when it goes. `of` keeps the lock.
class pass {
 public:
  pass(std::shared_ptr<void> of, read_write_lock& lock, access how) noexcept : of_(std::move(of)), lock_(&lock), how_(how) {}
  pass(pass&& other) noexcept : of_(std::move(other.of_)), lock_(std::exchange(other.lock_, nullptr)), how_(other.how_) {}
  pass& operator=(pass&& other) noexcept {
    if (this != &other) {
      leave();
      of_ = std::move(other.of_);
      lock_ = std::exchange(other.lock_, nullptr);
      how_ = other.how_;
    }
    return *this;
  }
  ~pass() { leave(); }

  bool inside() const noexcept { return lock_ != nullptr; }
  void leave() noexcept {
    if (lock_ != nullptr) std::exchange(lock_, nullptr)->leave(how_);
    of_.reset();
  }

 private:
  std::shared_ptr<void> of_;
  read_write_lock* lock_;
  access how_;
};

}  // namespace troupe::sharing
