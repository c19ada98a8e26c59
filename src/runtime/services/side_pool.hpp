// side_pool: threads for calls that block, so that no worker blocks.
//
// When a call comes and no thread is free, a new thread is started, up to the limit; it then waits
// for more calls. The oldest call runs first.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "troupe/base/platform.hpp"
#include "troupe/base/unique_function.hpp"

namespace troupe {

class side_pool {
 public:
  explicit side_pool(unsigned threads_max) : threads_max_(threads_max) {}
  side_pool(const side_pool&) = delete;
  side_pool& operator=(const side_pool&) = delete;
  ~side_pool() { shut_down(); }

  // Any thread. False when the pool has been shut down. Throws std::bad_alloc, or std::system_error
  // when no thread exists and none can be started.
  bool run(unique_function<void()> call);

  // The number of calls that run or wait for a thread.
  // order: relaxed  a statistic
  std::size_t count() const noexcept { return under_way_.load(std::memory_order_relaxed); }

  // The number of calls that wait for a thread. Thread: any.
  std::size_t waiting() {
    std::lock_guard lock(mutex_);
    return calls_.size();
  }

  // Waits for the calls that run; drops those that have not begun.
  void shut_down();

 private:
  // The loop of each thread: calls, one after the other, until the pool is shut down.
  void run_calls();

  // The words that a call changes lie together, so that few cache lines travel between the threads.
  alignas(base::line_bytes) std::mutex mutex_;
  std::atomic<std::size_t> under_way_{0};
  std::deque<unique_function<void()>> calls_;            // that no thread has begun
  alignas(base::line_bytes) unsigned idle_threads_ = 0;  // threads that wait for a call
  bool ending_ = false;
  const unsigned threads_max_;
  std::vector<std::thread> threads_;
  std::condition_variable filled_;  // changed only while a thread waits for a call
};

}  // namespace troupe
