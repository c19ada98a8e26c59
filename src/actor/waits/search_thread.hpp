// search_thread: a thread that makes one round after the other, each when it is asked for: of the
// search for deadlocks, which goes through everything that is suspended and must not stop the
// thread that keeps the time meanwhile.
//
// Threads: any. The first ask() starts the thread.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/thread_name.hpp"

namespace troupe::actor {

class search_thread {
 public:
  search_thread() = default;
  search_thread(const search_thread&) = delete;
  search_thread& operator=(const search_thread&) = delete;
  ~search_thread() { shut_down(); }

  // Makes the thread call `round` once more. It is the same function in all calls. False when the
  // thread has ended or cannot be started.
  template <class Round>
  bool ask(Round round) noexcept {
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return false;
      try {
        if (!thread_.joinable()) thread_ = std::thread([this, round] { live(round); });
      } catch (const std::exception&) {
        return false;
      }
      asked_ = true;
    }
    changed_.notify_one();
    return true;
  }

  // Waits for the round that is being made. Rounds that were asked for are dropped.
  void shut_down() noexcept {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

 private:
  template <class Round>
  void live(Round round) {
    base::name_this_thread("deadlocks");
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return asked_ || ending_; });
      if (ending_) return;
      asked_ = false;
      lock.unlock();
      round();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool asked_ = false, ending_ = false;
  std::thread thread_;
};

}  // namespace troupe::actor
