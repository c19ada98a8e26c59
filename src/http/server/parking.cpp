// server_state: parks connections and wakes them (parked.hpp).
#include <iterator>
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
          parked_.remove(as);
          link(one);
        }
        // Otherwise the task would wait for a report that never comes: it may have been started for
        // this very connection, which has been asked to end in the meantime.
        if (parked_.empty()) some_reported_.set();
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
void server_state::report(parked& one) noexcept {
  std::lock_guard lock(reports_mutex_);
  reported_.push(one);
  some_reported_.set();
}
void parked::on_arrival(arrival& self) noexcept {
  auto& one = static_cast<parked&>(self);
  one.server.report(one);
}

// Returns the reported connections, those that were reported first in front.
server_state::parked_queue server_state::take_reported() noexcept {
  std::lock_guard lock(reports_mutex_);
  return std::move(reported_);
}

task<> server_state::wake(waker own) {
  server_state& self = own.of();
  for (bool some = true; some;) {
    co_await self.some_reported_.wait();
    self.some_reported_.reset();
    parked_queue reported = self.take_reported();
    {
      std::lock_guard lock(self.mutex_);
      for (parked* one = reported.first(); one != nullptr; one = parked_queue::next(*one))
        self.parked_.remove(*one);
    }
    while (!reported.empty()) {
      const std::unique_ptr<parked> one(reported.pop());
      const connection_ending why = one->past.why;
      if (why == connection_ending::late || why == connection_ending::aborted) continue;
      try {
        one->revive();
      } catch (const std::bad_alloc&) {  // the connection is closed
      }
    }
    std::lock_guard lock(self.mutex_);
    some = !self.parked_.empty();
    if (!some) self.waking_ = false;
  }
  own.done();
}

// No task is left that would take the parked connections. From here on none is parked.
void server_state::end_parked_for_good() noexcept {
  std::unique_lock lock(mutex_);
  parks_ = waking_ = false;
  end_parked(connection_ending::aborted);
  parked_list all(std::move(parked_));
  lock.unlock();
  const auto count = static_cast<std::size_t>(std::ranges::distance(all));
  const auto all_reported = [&] {
    std::lock_guard reports(reports_mutex_);
    return reported_.count() == count;
  };
  // At the end of the runtime no other thread polls for completions, so this one does.
  while (!all_reported()) all.first()->owner().drive();
  take_reported();
  while (!all.empty()) {
    const std::unique_ptr<parked> one(all.pop_front());
  }
}

// ---- the parked list, ordered by time; the caller holds the mutex ----

void server_state::link(parked& one) noexcept {
  parked* older = parked_.last();
  while (older != nullptr && older->since_ns > one.since_ns) older = parked_list::previous(*older);
  parked_.insert_after(older, one);
}

void server_state::end_parked(parked& one, connection_ending why) noexcept {
  if (one.past.why != connection_ending::none) return;
  one.past.why = why;
  one.end();
}

void server_state::end_parked(connection_ending why) noexcept {
  for (parked& one : parked_) end_parked(one, why);
}

// Returns when the first connection expires that is not late yet.
std::int64_t server_state::end_late_parked(std::int64_t now_ns) noexcept {
  const std::int64_t idle_ns = options.idle_time.count();
  for (parked& one : parked_) {
    const std::int64_t expiry =
        one.since_ns > never_ns - idle_ns ? never_ns : one.since_ns + idle_ns;
    if (expiry > now_ns) return expiry;
    end_parked(one, connection_ending::late);
  }
  return never_ns;
}

}  // namespace troupe::http
