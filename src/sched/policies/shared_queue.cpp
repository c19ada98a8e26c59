#include "sched/policies/shared_queue.hpp"

#include "base/thread_name.hpp"
#include "base/threads/crash_stack.hpp"
#include "troupe/observe/trace.hpp"

namespace troupe::sched {

shared_queue::shared_queue(outstanding_work& alive, runtime_host& host)
    : alive_(alive), runtime_(host) {}

// Delegates to the private constructor: then, if a thread cannot be started, the destructor runs
// and ends those that were.
shared_queue::shared_queue(unsigned workers, outstanding_work& alive, runtime_host& host)
    : shared_queue(alive, host) {
  counters_.resize(workers);
  threads_.reserve(workers);
  for (unsigned i = 0; i < workers; ++i) {
    threads_.emplace_back([this, i] {
      base::name_this_thread("worker", i + 1);
      base::worker_number = i + 1;
      base::make_crash_stack();
      work();
    });
  }
}

shared_queue::~shared_queue() { shut_down(); }

// A runnable is counted from here until its turns have ended.
void shared_queue::submit(runnable& item) noexcept {
  alive_.enter();
  put(item);
}

void shared_queue::put(runnable& item) noexcept {
  std::lock_guard lock(mutex_);
  queue_.push(item);
  if (asleep_ == 0) return;
  ++counters_.front().wakes;  // the system decides which worker wakes: counted for the first
  observe::trace(observe::event::woke, nullptr);
  filled_.notify_one();
}

void shared_queue::work() {
  std::unique_lock lock(mutex_);
  counters& mine = counters_[base::worker_number - 1];
  for (;;) {
    if (!ending_ && queue_.empty()) {
      const observe::parked parked_scope;
      ++mine.parks;
      ++asleep_;
      filled_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      --asleep_;
    }
    if (ending_) return;
    runnable& item = *queue_.pop();
    ++mine.turns;
    lock.unlock();
    const runnable_vtable& type = *item.type;
    const after_turn after = type.run(item);
    if (after == after_turn::again || (is_quiet(after) && !type.deactivate(item))) {
      put(item);
    } else {
      if (after == after_turn::gone) type.dispose(item);
      if (alive_.leave()) runtime_.out_of_work();
    }
    lock.lock();
  }
}

// A thread for I/O alone: plain, like everything in this policy.
void shared_queue::attach(poller& io) {
  std::lock_guard lock(mutex_);
  if (ending_) return;
  io_ = &io;
  io_thread_ = std::thread([this, &io] {
    base::name_this_thread("io");
    unshared_events own;
    for (std::unique_lock held(mutex_); !ending_; held.lock()) {
      held.unlock();
      while (!io.door.try_enter()) std::this_thread::yield();
      const bool came = io.wait(own.events, nullptr);
      io.door.leave();
      if (came) io.serve(own.events);
    }
  });
}

void shared_queue::shut_down() {
  {
    std::lock_guard lock(mutex_);
    if (ending_) return;
    ending_ = true;
    filled_.notify_all();
  }
  if (io_ != nullptr) {
    io_->wake();
    io_thread_.join();
  }
  for (std::thread& thread : threads_) thread.join();
  while (runnable* item = queue_.pop()) {
    item->type->discard(*item);
    if (alive_.leave()) runtime_.out_of_work();
  }
}

std::size_t shared_queue::queued() const {
  std::lock_guard lock(mutex_);
  return queue_.count();
}

std::vector<policy::counters> shared_queue::count() const {
  std::lock_guard lock(mutex_);
  std::vector<counters> all = counters_;
  all.front().queued = queue_.count();
  return all;
}

}  // namespace troupe::sched
