#include "http/client/streams/stream_pool.hpp"

#include <algorithm>

#include "http/client/exchange.hpp"
#include "troupe/task/call_context.hpp"

namespace troupe::http {

// ---- turns ----

void stream_turn::give_back() noexcept {
  if (of_ == nullptr) return;
  if (const auto on = std::exchange(on_, nullptr)) {
    on->give_back_place();
    of_->freed(origin_);
  }
  if (connects_) of_->end_connecting(*this, nullptr, false, nullptr);
}

void stream_turn::connected(std::shared_ptr<stream_connection> made) {
  of_->end_connecting(*this, std::move(made), false, nullptr);
}
void stream_turn::connected_plain() { of_->end_connecting(*this, nullptr, true, nullptr); }
void stream_turn::failed(std::exception_ptr failure) {
  if (connects_) of_->end_connecting(*this, nullptr, false, failure);
}

// ---- the pool ----

stream_pool::origin_state& stream_pool::state_of(const std::string& origin) {
  if (all_.size() >= prune_at_ && !all_.contains(origin)) {
    std::erase_if(all_, [](const auto& one) {
      const origin_state& state = one.second;
      return state.open.empty() && state.waiting.empty() && !state.connecting;
    });
    prune_at_ = std::max<std::size_t>(64, all_.size() * 2);
  }
  return all_[origin];
}

// Gives a turn if there is one now.
bool stream_pool::give(origin_state& in, const std::string& origin, stream_turn& to) {
  for (const auto& one : in.open) {
    if (!one->reserve()) continue;
    to = stream_turn(*this, origin);
    to.on_ = one;
    return true;
  }
  if (in.is_plain && in.open.empty()) {
    to = stream_turn(*this, origin);
    return true;
  }
  // As long as a server has not said how many streams it allows, a further connection would get too
  // many as well.
  const bool is_unknown =
      std::ranges::any_of(in.open, [](const auto& one) { return !one->has_said_max(); });
  if (in.connecting || is_unknown) return false;
  // The first connection may wait for its slot; a further one is opened only if there is one.
  std::optional<connection_slot> slot;
  if (!in.open.empty()) {
    if (auto got = of_.slots.try_take(origin)) slot.emplace(std::move(*got));
    if (!slot) return false;
  }
  to = stream_turn(*this, origin);
  if (slot) to.slot_.emplace(std::move(*slot));
  to.connects_ = in.connecting = true;
  return true;
}

void stream_pool::serve(origin_state& in, const std::string& origin, events& ready) {
  while (!in.waiting.empty()) {
    waiter& first = *in.waiting.front();
    if (!give(in, origin, first.turn)) return;
    first.is_listed = false;
    ready.push_back(first.ready);
    in.waiting.pop_front();
  }
}

void stream_pool::set_all(const events& ready) {
  for (const event& one : ready) one.set();
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

void stream_pool::end_connecting(stream_turn& of, std::shared_ptr<stream_connection> made,
                                 bool is_plain, const std::exception_ptr& failure) {
  events ready;
  {
    const std::lock_guard lock(mutex_);
    origin_state& in = state_of(of.origin_);
    if (std::exchange(of.connects_, false)) in.connecting = false;
    if (made != nullptr) {
      for (const auto& other : in.open)
        in.streams_max = other->streams_max().value_or(in.streams_max);
      made->expect(in.streams_max);
      in.open.push_back(std::move(made));
    }
    if (!in.open.empty()) {
      in.is_plain = false;
    } else if (is_plain) {
      in.is_plain = true;
    }
    if (failure != nullptr && in.open.empty()) {
      for (waiter* const one : in.waiting) {
        one->failure = failure;
        one->is_listed = false;
        ready.push_back(one->ready);
      }
      in.waiting.clear();
    }
    serve(in, of.origin_, ready);
  }
  set_all(ready);
}

bool stream_pool::retire(stream_connection& one) {
  wire_ptr wire;
  {
    const std::lock_guard lock(mutex_);
    bool is_good = false;
    if (!one.retire(wire, is_good)) return false;
    origin_state& in = state_of(one.origin());
    in.streams_max = one.streams_max().value_or(in.streams_max);
    std::erase_if(in.open, [&](const auto& other) { return other.get() == &one; });
    // Under the mutex, so that who finds no open connection finds the kept one.
    if (is_good) of_.pool.put(std::move(wire));
  }
  if (wire != nullptr) wire->say_goodbye();
  wire.reset();
  freed(one.origin());
  return true;
}

// Takes the waiter out of the list, if it is still there.
class stream_pool::withdrawal {
 public:
  withdrawal(stream_pool& by, const std::string& origin, waiter& one) noexcept
      : by_(by), origin_(origin), one_(one) {}
  withdrawal(const withdrawal&) = delete;
  withdrawal& operator=(const withdrawal&) = delete;
  ~withdrawal() {
    const std::lock_guard lock(by_.mutex_);
    if (std::exchange(one_.is_listed, false)) std::erase(by_.all_[origin_].waiting, &one_);
  }

 private:
  stream_pool& by_;
  const std::string& origin_;
  waiter& one_;
};

task<stream_turn> stream_pool::take(std::string origin, tasks::limits within) {
  const client_options& options = of_.options;
  std::chrono::nanoseconds patience = options.waiting_time;
  waiter mine;
  {
    const std::lock_guard lock(mutex_);
    origin_state& in = state_of(origin);
    stream_turn at_once;
    if (in.waiting.empty() && give(in, origin, at_once)) co_return at_once;
    // Those that will find a place on the first connection wait for nobody else.
    std::size_t most = options.requests_waiting;
    if (in.open.empty()) {
      most += options.http2.streams;
      patience = options.waiting_time + std::min(options.connect_time, options.waiting_time);
    }
    if (in.waiting.size() >= most)
      throw origin_full(origin_full::limit::requests_waiting, origin, options.requests_waiting);
    in.waiting.push_back(&mine);
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
  if (mine.turn.of_ == nullptr)
    throw origin_full(origin_full::limit::waiting_time, origin, options.requests_waiting);
  co_return std::move(mine.turn);
}

}  // namespace troupe::http
