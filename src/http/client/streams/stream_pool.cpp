#include "http/client/streams/stream_pool.hpp"

#include <algorithm>

#include "base/invariant.hpp"
#include "troupe/task/call_context.hpp"

namespace troupe::http {

// ---- turns ----

void stream_turn::give_back() noexcept {
  if (pool_ == nullptr) return;
  if (const auto on = std::exchange(on_, nullptr)) {
    on->give_back_place();
    pool_->freed(origin_);
  }
  if (connects_) pool_->end_connecting(*this, nullptr, false, nullptr);
}

void stream_turn::connected(std::shared_ptr<stream_connection> connection) {
  pool_->end_connecting(*this, std::move(connection), false, nullptr);
}
void stream_turn::connected_plain() { pool_->end_connecting(*this, nullptr, true, nullptr); }
void stream_turn::failed(std::exception_ptr failure) {
  if (connects_) pool_->end_connecting(*this, nullptr, false, failure);
}

// ---- the pool ----

stream_pool::origin_state& stream_pool::state_of(const std::string& origin) {
  if (all_.size() >= prune_at_ && !all_.contains(origin)) {
    std::erase_if(all_, [](const auto& entry) {
      const origin_state& state = entry.second;
      return state.open.empty() && state.waiting.empty() && !state.connecting;
    });
    prune_at_ = std::max<std::size_t>(64, all_.size() * 2);
  }
  return all_[origin];
}

// Gives a turn if there is one now.
bool stream_pool::give(origin_state& state, const std::string& origin, stream_turn& turn) {
  for (const auto& connection : state.open) {
    if (!connection->reserve()) continue;
    turn = stream_turn(*this, origin);
    turn.on_ = connection;
    return true;
  }
  if (state.is_plain && state.open.empty()) {
    turn = stream_turn(*this, origin);
    return true;
  }
  // Until the server announces its limit of streams, a further connection would also get too many.
  const bool is_unknown = std::ranges::any_of(
      state.open, [](const auto& connection) { return !connection->has_said_max(); });
  if (state.connecting || is_unknown) return false;
  // The first connection may wait for its slot; a further one is opened only if a slot is free.
  std::optional<connection_slot> slot;
  if (!state.open.empty()) {
    if (auto got = core_.slots.try_take(origin)) slot.emplace(std::move(*got));
    if (!slot) return false;
  }
  turn = stream_turn(*this, origin);
  if (slot) turn.slot_.emplace(std::move(*slot));
  turn.connects_ = state.connecting = true;
  return true;
}

void stream_pool::serve(origin_state& state, const std::string& origin, events& ready) {
  while (!state.waiting.empty()) {
    waiter& first = *state.waiting.front();
    TROUPE_INVARIANT(first.is_listed, "P2");
    if (!give(state, origin, first.turn)) return;
    first.is_listed = false;
    ready.push_back(first.ready);
    state.waiting.pop_front();
  }
}

void stream_pool::set_all(const events& ready) {
  for (const event& wakeup : ready) wakeup.set();
}

void stream_pool::freed(const std::string& origin) {
  events ready;
  {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(origin);
    if (found != all_.end()) serve(found->second, origin, ready);
  }
  set_all(ready);
}

void stream_pool::end_connecting(stream_turn& turn, std::shared_ptr<stream_connection> connection,
                                 bool is_plain, const std::exception_ptr& failure) {
  events ready;
  {
    const std::lock_guard lock(mutex_);
    origin_state& state = state_of(turn.origin_);
    TROUPE_INVARIANT(!turn.connects_ || state.connecting, "P1");
    if (std::exchange(turn.connects_, false)) state.connecting = false;
    if (connection != nullptr) {
      for (const auto& other : state.open)
        state.streams_max = other->streams_max().value_or(state.streams_max);
      connection->expect(state.streams_max);
      state.open.push_back(std::move(connection));
    }
    if (!state.open.empty()) {
      state.is_plain = false;
    } else if (is_plain) {
      state.is_plain = true;
    }
    if (failure != nullptr && state.open.empty()) {
      for (waiter* const waiting : state.waiting) {
        waiting->failure = failure;
        waiting->is_listed = false;
        ready.push_back(waiting->ready);
      }
      state.waiting.clear();
    }
    serve(state, turn.origin_, ready);
  }
  set_all(ready);
}

bool stream_pool::retire(stream_connection& connection) {
  wire_ptr wire;
  {
    const std::lock_guard lock(mutex_);
    bool is_good = false;
    if (!connection.retire(wire, is_good)) return false;
    origin_state& state = state_of(connection.origin());
    state.streams_max = connection.streams_max().value_or(state.streams_max);
    std::erase_if(state.open, [&](const auto& other) { return other.get() == &connection; });
    // Under the mutex, so that a call that finds no open connection finds the kept one.
    if (is_good) core_.pool.put(std::move(wire));
  }
  if (wire != nullptr) wire->say_goodbye();
  wire.reset();
  freed(connection.origin());
  return true;
}

// Takes the waiter out of the list, if it is still there.
class stream_pool::withdrawal {
 public:
  withdrawal(stream_pool& by, const std::string& origin, waiter& waits) noexcept
      : by_(by), origin_(origin), waiter_(waits) {}
  withdrawal(const withdrawal&) = delete;
  withdrawal& operator=(const withdrawal&) = delete;
  ~withdrawal() {
    const std::lock_guard lock(by_.mutex_);
    if (!std::exchange(waiter_.is_listed, false)) return;
    [[maybe_unused]] const auto erased = std::erase(by_.all_[origin_].waiting, &waiter_);
    TROUPE_INVARIANT(erased == 1, "P2");
  }

 private:
  stream_pool& by_;
  const std::string& origin_;
  waiter& waiter_;
};

task<stream_turn> stream_pool::take(std::string origin, tasks::limits within) {
  const client_options& options = core_.options;
  std::chrono::nanoseconds patience = options.waiting_time;
  waiter mine;
  {
    const std::lock_guard lock(mutex_);
    origin_state& state = state_of(origin);
    stream_turn at_once;
    if (state.waiting.empty() && give(state, origin, at_once)) co_return at_once;
    // Requests that will find a place on the first connection wait for no other.
    std::size_t most = options.requests_waiting;
    if (state.open.empty()) {
      most += options.http2.streams;
      patience = options.waiting_time + std::min(options.connect_time, options.waiting_time);
    }
    if (state.waiting.size() >= most)
      throw origin_full(origin_full::limit::requests_waiting, origin, options.requests_waiting);
    state.waiting.push_back(&mine);
    mine.is_listed = true;
  }
  {
    const withdrawal at_end(*this, origin, mine);
    const tasks::limits soon = within.within(patience);
    try {
      co_await mine.ready.wait().timeout(soon.left()).stop(soon.stop());
    } catch (const timed_out&) {
      if (within.over() || this_call::remaining().count() <= 0) throw;
    }
  }
  if (mine.failure != nullptr) std::rethrow_exception(mine.failure);
  if (mine.turn.pool_ == nullptr)
    throw origin_full(origin_full::limit::waiting_time, origin, options.requests_waiting);
  co_return std::move(mine.turn);
}

}  // namespace troupe::http
