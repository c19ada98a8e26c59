// server_state: parks connections and wakes them (parked.hpp).
#include <mutex>
#include <new>
#include <utility>

#include "http/server/connection.hpp"
#include "http/server/parked.hpp"
#include "http/server/server_state.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::http {

// Owned by the task that wakes parked connections. When that task is ended from outside, mostly by
// the end of the runtime, the parked connections are ended, too.
class server_state::waker {
 public:
  explicit waker(std::shared_ptr<server_state> of) noexcept : of_(std::move(of)) {}
  waker(waker&&) noexcept = default;
  ~waker() {
    if (of_ != nullptr) of_->end_parked_for_good();
  }
  server_state& of() const noexcept { return *of_; }
  void done() noexcept { of_.reset(); }

 private:
  std::shared_ptr<server_state> of_;
};

bool server_state::park(connection& one, parked& as, stream& of) {
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      const bool may = parks_ && one.may_park();
      if (waking_) {
        if (may) {
          unlink(one);
          link(as);
          if (as.begin(of)) return true;
          unlink(as);
          link(one);
        }
        // Otherwise the task would wait for a report that never comes: it may have been started for
        // this very connection, which has been asked to end in the meantime.
        if (newest_parked_ == nullptr) told_.set();
        return false;
      }
      if (!may) return false;
      waking_ = true;
    }
    try {
      static_cast<void>(spawn(wake(waker(shared_from_this()))));
    } catch (...) {
      std::lock_guard lock(mutex_);
      waking_ = false;
      throw;
    }
  }
}

bool server_state::unpark(connection& one) {
  std::lock_guard lock(mutex_);
  return one.stay();
}

// `one` may be freed as soon as the mutex is released, and perhaps the server, too.
void server_state::told_of(parked& one) noexcept {
  std::lock_guard lock(told_mutex_);
  one.next_told = nullptr;
  *last_told_ = &one;
  last_told_ = &one.next_told;
  told_.set();
}

// Returns the reported connections, those that were reported first in front.
parked* server_state::take_told() noexcept {
  std::lock_guard lock(told_mutex_);
  last_told_ = &first_told_;
  return std::exchange(first_told_, nullptr);
}

task<> server_state::wake(waker own) {
  server_state& self = own.of();
  for (bool some = true; some;) {
    co_await self.told_.wait();
    self.told_.reset();
    parked* told = self.take_told();
    {
      std::lock_guard lock(self.mutex_);
      for (parked* one = told; one != nullptr; one = one->next_told) self.unlink(*one);
    }
    while (told != nullptr) {
      const std::unique_ptr<parked> one(std::exchange(told, told->next_told));
      const connection_ending why = one->past.why;
      if (why == connection_ending::late || why == connection_ending::aborted) continue;
      try {
        one->revive();
      } catch (const std::bad_alloc&) {  // the connection is closed
      }
    }
    std::lock_guard lock(self.mutex_);
    some = self.newest_parked_ != nullptr;
    if (!some) self.waking_ = false;
  }
  own.done();
}

// No task is left that would take the parked connections. From here on none is parked.
void server_state::end_parked_for_good() noexcept {
  parked* all = nullptr;
  std::size_t count = 0;
  {
    std::lock_guard lock(mutex_);
    parks_ = waking_ = false;
    end_parked(connection_ending::aborted);
    all = std::exchange(newest_parked_, nullptr);
    oldest_parked_ = nullptr;
    for (parked* one = all; one != nullptr; one = one->older) ++count;
  }
  const auto all_told = [&] {
    std::lock_guard lock(told_mutex_);
    std::size_t told = 0;
    for (parked* one = first_told_; one != nullptr; one = one->next_told) ++told;
    return told == count;
  };
  // At the end of the runtime no other thread polls for completions, so this one does.
  while (!all_told()) all->home().drive();
  take_told();
  while (all != nullptr) {
    const std::unique_ptr<parked> one(std::exchange(all, all->older));
  }
}

// ---- the parked list, ordered by time; the caller holds the mutex ----

void server_state::link(parked& one) noexcept {
  parked* older = newest_parked_;
  while (older != nullptr && older->since_ns > one.since_ns) older = older->older;
  one.older = older;
  one.newer = older != nullptr ? older->newer : oldest_parked_;
  (one.older != nullptr ? one.older->newer : oldest_parked_) = &one;
  (one.newer != nullptr ? one.newer->older : newest_parked_) = &one;
}

void server_state::unlink(parked& one) noexcept {
  (one.older != nullptr ? one.older->newer : oldest_parked_) = one.newer;
  (one.newer != nullptr ? one.newer->older : newest_parked_) = one.older;
}

void server_state::end_parked(parked& one, connection_ending why) noexcept {
  if (one.past.why != connection_ending::none) return;
  one.past.why = why;
  one.end();
}

void server_state::end_parked(connection_ending why) noexcept {
  for (parked* one = oldest_parked_; one != nullptr; one = one->newer) end_parked(*one, why);
}

// Returns when the first connection expires that is not late yet.
std::int64_t server_state::end_late_parked(std::int64_t now_ns) noexcept {
  const std::int64_t idle_ns = options.idle_time.count();
  for (parked* one = oldest_parked_; one != nullptr; one = one->newer) {
    const std::int64_t expiry =
        one->since_ns > never_ns - idle_ns ? never_ns : one->since_ns + idle_ns;
    if (expiry > now_ns) return expiry;
    end_parked(*one, connection_ending::late);
  }
  return never_ns;
}

}  // namespace troupe::http
