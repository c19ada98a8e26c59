// read_write_lock: any number of readers, or one writer. Waiting parties block no thread. For the
// library's own use; users meet guarded.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace troupe::sharing {

enum class access : std::uint8_t { read, write };

// Thread: any. First come, first served: no request overtakes a waiting request, so that neither
// readers nor writers starve.
class read_write_lock {
 public:
  // A party that waits for the lock. enter() is called once, and never under the lock's mutex.
  class waiter {
   public:
    explicit waiter(access wanted) noexcept : how_(wanted) {}
    virtual ~waiter() = default;
    virtual bool gave_up() const noexcept = 0;
    virtual void enter() noexcept = 0;

   private:
    friend read_write_lock;
    const access how_;
    std::unique_ptr<waiter> next_;
  };

  bool try_enter(access how) noexcept;
  // Calls waiting->enter() as soon as the party has the lock, perhaps at once.
  void enter(std::unique_ptr<waiter> waiting) noexcept;
  void leave(access how) noexcept;

 private:
  bool may_enter(access how) const noexcept;
  bool enter_locked(access how) noexcept;

  std::mutex mutex_;
  std::size_t readers_ = 0;
  bool writer_ = false;
  // the waiting parties; a list, so that no party is refused for lack of memory
  std::unique_ptr<waiter> first_;
  waiter* last_ = nullptr;
};

// Holds the lock; the destructor releases it. `owner` keeps the lock's owner alive.
class pass {
 public:
  pass(std::shared_ptr<void> owner, read_write_lock& lock, access how) noexcept
      : owner_(std::move(owner)), lock_(&lock), how_(how) {}
  pass(pass&& other) noexcept
      : owner_(std::move(other.owner_)),
        lock_(std::exchange(other.lock_, nullptr)),
        how_(other.how_) {}
  pass& operator=(pass&& other) noexcept {
    if (this != &other) {
      leave();
      owner_ = std::move(other.owner_);
      lock_ = std::exchange(other.lock_, nullptr);
      how_ = other.how_;
    }
    return *this;
  }
  ~pass() { leave(); }

  bool inside() const noexcept { return lock_ != nullptr; }
  void leave() noexcept {
    if (lock_ != nullptr) std::exchange(lock_, nullptr)->leave(how_);
    owner_.reset();
  }

 private:
  std::shared_ptr<void> owner_;
  read_write_lock* lock_;
  access how_;
};

}  // namespace troupe::sharing
