#include "http/client/wires/connection_slots.hpp"

#include <algorithm>
#include <mutex>

#include "troupe/task/call_context.hpp"

namespace troupe::http {

namespace {

// The advised wait of a caller: a connection may become free at any moment.
constexpr std::chrono::seconds pause_advised{1};

}  // namespace

origin_full::origin_full(limit which, const std::string& origin, std::size_t most)
    : try_later("troupe: http: " + origin + ": all its connections are in use, and " +
                    (which == limit::requests_waiting
                         ? std::to_string(most) +
                               " requests wait already: try again later, or allow more "
                               "(client_options::connections_per_origin, requests_waiting)"
                         : "none became free in time: try again later, or allow more "
                           "(client_options::connections_per_origin, waiting_time)"),
                pause_advised),
      which_(which) {}

class connection_slots::waiting_claim {
 public:
  waiting_claim(connection_slots& by, origin_slots& slots, const std::string& origin)
      : by_(by), slots_(slots) {
    const std::lock_guard lock(by_.mutex_);
    if (slots_.waiting >= by_.waiting_max_)
      throw origin_full(origin_full::limit::requests_waiting, origin, by_.waiting_max_);
    ++slots_.waiting;
  }
  waiting_claim(const waiting_claim&) = delete;
  waiting_claim& operator=(const waiting_claim&) = delete;
  ~waiting_claim() {
    const std::lock_guard lock(by_.mutex_);
    --slots_.waiting;
  }

 private:
  connection_slots& by_;
  origin_slots& slots_;
};

connection_slots::connection_slots(const client_options& options)
    : per_origin_(options.connections_per_origin),
      waiting_max_(options.requests_waiting),
      waiting_time_(options.waiting_time) {}

std::shared_ptr<origin_slots> connection_slots::of(const std::string& origin) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<origin_slots>& known = all_[origin];
  std::shared_ptr<origin_slots> found = known.lock();
  if (found != nullptr) return found;
  found = std::make_shared<origin_slots>(per_origin_);
  known = found;
  if (all_.size() >= prune_at_) {
    std::erase_if(all_, [](const auto& entry) { return entry.second.expired(); });
    prune_at_ = std::max<std::size_t>(64, all_.size() * 2);
  }
  return found;
}

std::optional<connection_slot> connection_slots::try_take(const std::string& origin) {
  const std::shared_ptr<origin_slots> slots = of(origin);
  std::optional<connection_slot> slot;
  if (auto got = slots->free.try_acquire()) slot.emplace(slots, std::move(*got));
  return slot;
}

task<connection_slot> connection_slots::take(std::string origin, tasks::limits within) {
  const std::shared_ptr<origin_slots> slots = of(origin);
  if (auto got = slots->free.try_acquire()) co_return connection_slot(slots, std::move(*got));
  const waiting_claim mine(*this, *slots, origin);
  const tasks::limits soon = within.within(waiting_time_);
  try {
    semaphore::permit got = co_await slots->free.acquire().timeout(soon.left()).stop(soon.stop());
    co_return connection_slot(slots, std::move(got));
  } catch (const timed_out&) {
    if (within.over() || this_call::remaining().count() <= 0) throw;
  }
  throw origin_full(origin_full::limit::waiting_time, origin, waiting_max_);
}

}  // namespace troupe::http
