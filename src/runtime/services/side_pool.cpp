#include "runtime/services/side_pool.hpp"

#include <system_error>
#include <utility>

#include "base/thread_name.hpp"

namespace troupe {

bool side_pool::run(unique_function<void()> call) {
  std::unique_lock lock(mutex_);
  if (ending_) return false;
  if (idle_threads_ <= calls_.size() && threads_.size() < threads_max_) {
    threads_.reserve(threads_.size() + 1);
    try {
      threads_.emplace_back([this, number = static_cast<unsigned>(threads_.size() + 1)] {
        base::name_this_thread("blocking", number);
        run_calls();
      });
    } catch (const std::system_error&) {
      if (threads_.empty()) throw;  // else the existing threads run it later
    }
  }
  calls_.push_back(std::move(call));
  under_way_.fetch_add(1, std::memory_order_relaxed);  // order: relaxed  a statistic
  const bool wakes = idle_threads_ != 0;  // another thread sees the call when its own has returned
  lock.unlock();
  if (wakes) filled_.notify_one();
  return true;
}

void side_pool::run_calls() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_threads_;
    filled_.wait(lock, [this] { return ending_ || !calls_.empty(); });
    --idle_threads_;
    if (ending_) return;
    auto call = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    call();
    // order: relaxed  a statistic, changed before the call's captures are destroyed
    under_way_.fetch_sub(1, std::memory_order_relaxed);
    call = nullptr;
    lock.lock();
  }
}

void side_pool::shut_down() {
  std::unique_lock lock(mutex_);
  ending_ = true;
  while (!calls_.empty()) {
    auto dropped = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    dropped = nullptr;  // the results that this resolves may resume others: not under the mutex
    lock.lock();
  }
  lock.unlock();
  filled_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace troupe
