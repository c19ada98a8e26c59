#include "jobs/pool/memory_account.hpp"

#include "base/invariant.hpp"

namespace troupe::jobs {

void memory_account::charge(std::size_t bytes) noexcept {
  add_ref();
  const std::size_t now = gate_.take(bytes);
  // order: relaxed (both)  a statistic
  std::size_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void memory_account::discharge(std::size_t bytes) noexcept {
  if (gate_.give(bytes)) {
    std::lock_guard lock(mutex_);
    if (pool_ != nullptr) call_runner_(*pool_);
  }
  drop_ref();
}

void memory_account::close() noexcept {
  std::lock_guard lock(mutex_);
  pool_ = nullptr;
}

bool memory_account::set_aside(job& job) noexcept {
  std::lock_guard lock(mutex_);
  aside_.push_back(job);
  // order: relaxed  a hint for a thread that needs the job, which looks again under the mutex
  job.kept_by.store(this, std::memory_order_relaxed);
  gate_.put_aside();
  // Checked under the mutex, where no other thread can take the job up, run it and free it.
  // order: relaxed  a hint: a claimed job that stays here is dropped when it is taken up
  if (!job.claimed.load(std::memory_order_relaxed)) return true;
  unlink(job);
  return false;
}

void memory_account::unlink(job& job) noexcept {
  // order: relaxed  under the mutex
  TROUPE_INVARIANT(job.kept_by.load(std::memory_order_relaxed) == this, "A1");
  aside_.remove(job);
  job.kept_by.store(nullptr, std::memory_order_relaxed);  // order: relaxed  under the mutex
  gate_.took_up();
}

job* memory_account::take_up() noexcept {
  if (!gate_.some_aside()) return nullptr;
  std::lock_guard lock(mutex_);
  job* const item = aside_.first();
  if (item != nullptr) unlink(*item);
  return item;
}

bool memory_account::take_out(job& wanted) noexcept {
  // order: relaxed (both)  a hint, and under the mutex
  if (wanted.kept_by.load(std::memory_order_relaxed) != this) return false;
  std::lock_guard lock(mutex_);
  if (wanted.kept_by.load(std::memory_order_relaxed) != this) return false;
  unlink(wanted);
  return true;
}

}  // namespace troupe::jobs
