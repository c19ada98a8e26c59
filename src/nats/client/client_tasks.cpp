// The tasks that keep a client connected.
#include <vector>

#include "base/invariant.hpp"
#include "base/text/reason.hpp"
#include "kit/clock_and_random.hpp"
#include "nats/client/client_state.hpp"
#include "troupe/kit/retry.hpp"
#include "troupe/kit/stoppable_sleep.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::nats {
namespace {

constexpr std::size_t read_bytes = 64 * 1024;

bool is_denial(const std::exception_ptr& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (const error& known) {
    return known.kind() == failure::denied;
  } catch (...) {
    return false;
  }
}
bool is_for_the_caller(const std::exception_ptr& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (const option_error&) {
    return true;
  } catch (const cancelled&) {
    return true;
  } catch (...) {
    return false;
  }
}

// The end of a connection, whatever ends the task that serves it.
struct end_of_wire {
  explicit end_of_wire(wire& ended) noexcept : on(ended) {}
  end_of_wire(const end_of_wire&) = delete;
  ~end_of_wire() { on.ends.request_stop(); }
  wire& on;
};

}  // namespace

task<> client_state::run(std::shared_ptr<client_state> self) {
  outcome why;
  {
    std::lock_guard held(self->mutex_);
    self->talk_.name_inbox(self->secrets_.token(), self->chosen.inbox, &self->secrets_);
  }
  try {
    for (bool first = true;; first = false) {
      task<wire_ptr> connects = connect_some(self, first);
      auto within = with_stop(self->ends_.get_token(), std::move(connects));
      const wire_ptr on = co_await std::move(within);
      const std::chrono::nanoseconds began = troupe::now();
      if (!self->begin(on)) break;
      task<> serves = self->serve(on);
      co_await std::move(serves);
      if (self->ends_.stop_requested()) break;
      self->tell(incident::lost, on->reason);
      // A server that takes us and sends us away at once is not asked without a pause.
      const auto pause = self->chosen.reconnect_delay;
      if (troupe::now() - began < std::chrono::seconds(1))
        co_await kit::stoppable_sleep(pause).stop(self->ends_.get_token());
    }
  } catch (const cancelled&) {
  } catch (const error& failed) {
    why = outcome::failed(failed.kind(), failed.what());
  } catch (const std::exception& failed) {
    why = outcome::failed(failure::unreachable, failed.what());
  }
  self->end(why);
}

task<wire_ptr> client_state::connect_some(std::shared_ptr<client_state> self, bool first) {
  const options& chosen = self->chosen;
  if (!first && chosen.reconnect_rounds == 0)
    throw error(failure::lost, "troupe: nats: the connection was lost");
  retry_policy policy;
  policy.attempts = first ? 1 : chosen.reconnect_rounds;
  policy.delay = chosen.reconnect_delay;
  policy.delay_max = chosen.reconnect_delay_max;
  auto make = [self] { return one_round(self); };
  auto tries = retry(policy, std::move(make));
  co_return co_await std::move(tries);
}

task<wire_ptr> client_state::one_round(std::shared_ptr<client_state> self) {
  std::string reasons;
  failure kind = failure::unreachable;
  std::vector<server> order;
  {
    std::lock_guard held(self->mutex_);
    order = self->servers_.next_round();
  }
  for (const server& candidate : order) {
    std::exception_ptr failed;
    try {
      task<wire_ptr> opens = open_wire(candidate, self->wires_);
      auto within = with_deadline(self->chosen.connect_timeout, std::move(opens));
      co_return co_await std::move(within);
    } catch (...) {
      failed = std::current_exception();
    }
    if (is_for_the_caller(failed)) std::rethrow_exception(failed);
    if (is_denial(failed)) kind = failure::denied;
    reasons +=
        (reasons.empty() ? "" : "; ") + candidate.authority() + ": " + base::reason_of(failed);
  }
  throw error(kind, "troupe: nats: no server accepts the connection: " + reasons);
}

// False: it is not wanted any more.
bool client_state::begin(const wire_ptr& on) {
  endings later;
  {
    std::lock_guard held(mutex_);
    if (ends_.stop_requested()) return false;
    on_ = on;
    server_ = on->address.authority();
    ++connections_;
    servers_.connected_to(on->address);
    if (chosen.discover_servers) servers_.add(on->about.connect_urls);
    talk_.begin(on->about);
    let_in(later);
  }
  later.resolve();
  tell(incident::connected, server_);
  return true;
}

task<> client_state::serve(wire_ptr on) {
  const end_of_wire ends(*on);
  future<> writes = spawn(write_out(shared_from_this(), on));
  future<> lives = spawn(keep_alive(shared_from_this(), on));
  task<> reads = read_in(on);
  co_await std::move(reads);
  on->ends.request_stop();
  co_await std::move(writes);
  co_await std::move(lives);
  lose(on);
}

task<> client_state::read_in(wire_ptr on) {
  const auto buffer = std::make_unique_for_overwrite<char[]>(read_bytes);
  std::string why = "the server has ended the connection";
  bool stopped = false;
  try {
    std::string_view came = on->rest;
    for (;;) {
      while (!came.empty()) {
        const parser::step step = on->reads.next(came);
        came.remove_prefix(step.consumed);
        if (step.outcome != parser::event::need_more && !receive(*on, step.outcome)) co_return;
      }
      std::size_t bytes = 0;
      const std::span<char> into(buffer.get(), read_bytes);
      if (on->secure.is_open()) {
        bytes = co_await on->secure.read(into).stop(on->ends.get_token());
      } else {
        bytes = co_await on->plain.read(into).stop(on->ends.get_token());
      }
      if (bytes == 0) break;
      came = std::string_view(buffer.get(), bytes);
    }
  } catch (const cancelled&) {
    stopped = true;
  } catch (const troupe::error& failed) {
    why = failed.what();
  }
  if (stopped && !on->ends.stop_requested()) throw cancelled("troupe: nats: the runtime ends");
  std::lock_guard held(mutex_);
  if (on->reason.empty()) on->reason = std::move(why);
}

task<> client_state::write_out(std::shared_ptr<client_state> self, wire_ptr on) {
  std::string batch, why;
  try {
    for (;;) {
      endings later;
      std::optional<future<>> wait;
      bool finished = false;
      {
        std::lock_guard held(self->mutex_);
        self->let_in(later);
        self->talk_.take(batch);
        self->let_in(later);
        finished = batch.empty() && self->finishing_;
        if (batch.empty()) wait = self->writer_.emplace().get_future();
      }
      later.resolve();
      if (finished) break;
      if (wait) {
        co_await std::move(*wait).stop(on->ends.get_token());
        continue;
      }
      task<> writes = on->write(batch, self->chosen.write_timeout);
      co_await std::move(writes);
    }
    self->ends_.request_stop();
  } catch (const cancelled&) {
  } catch (const troupe::error& failed) {
    why = failed.what();
  }
  {
    std::lock_guard held(self->mutex_);
    if (on->reason.empty()) on->reason = std::move(why);
  }
  on->ends.request_stop();
}

task<> client_state::keep_alive(std::shared_ptr<client_state> self, wire_ptr on) {
  try {
    for (bool alive = true; alive;) {
      co_await kit::stoppable_sleep(self->chosen.ping_interval).stop(on->ends.get_token());
      endings later;
      {
        std::lock_guard held(self->mutex_);
        alive = self->talk_.unanswered() < self->chosen.pings_max;
        if (alive) {
          self->talk_.ping(0);
          self->wake_writer(later);
        } else if (on->reason.empty()) {
          on->reason = "the server does not answer pings";
        }
      }
      later.resolve();
    }
    on->ends.request_stop();
  } catch (const cancelled&) {
  }
}

// Handles one event. Returns false if the connection can no longer be used.
bool client_state::receive(wire& on, parser::event parsed) {
  happened event;
  subscription_ptr reader;
  std::vector<subscription_ptr> denied;
  endings later;
  {
    std::lock_guard held(mutex_);
    talk_.receive(parsed, on.reads, event);
    using kind = happened::kind;
    if (parsed == parser::event::ping) wake_writer(later);
    received_ += event.outcome == kind::message || event.outcome == kind::answer;
    if (event.outcome == kind::message) {
      const auto found = subscriptions_.find(event.number);
      if (found != subscriptions_.end()) reader = found->second;
    } else if (event.outcome == kind::answer) {
      auto found = sent_.extract(event.number);
      if (found) later.add(std::move(found.mapped()), {}, std::move(event.message));
    } else if (event.outcome == kind::pong) {
      take_sent(event.number, {}, later);
    } else if (event.outcome == kind::info && chosen.discover_servers) {
      servers_.add(talk_.about().connect_urls);
    } else if (event.outcome == kind::denied_send) {
      for (const std::uint64_t number : event.numbers)
        take_sent(number, outcome::failed(failure::denied, "troupe: nats: " + event.text), later);
    } else if (event.outcome == kind::denied_read) {
      for (const std::uint64_t number : event.numbers) {
        const auto found = subscriptions_.find(number);
        if (found == subscriptions_.end()) continue;
        denied.push_back(found->second);
        end_under(*found->second, outcome::failed(failure::denied, "troupe: nats: " + event.text));
      }
    } else if (event.outcome == kind::refused || event.outcome == kind::broken) {
      on.reason = "the server says: " + event.text;
      if (event.outcome == kind::broken)
        on.reason = "the server does not speak NATS: " + event.text;
    }
  }
  later.resolve();
  if (reader != nullptr) deliver(reader, event);
  for (const subscription_ptr& each : denied) each->arrived.close();
  if (!event.text.empty() && event.outcome != happened::kind::broken)
    tell(incident::refused, event.text);
  return event.outcome != happened::kind::broken;
}

void client_state::deliver(const subscription_ptr& subscription, happened& event) {
  const std::size_t bytes = bytes_of(event.message);
  // order: relaxed  a bound; the messages themselves pass through the channel
  const std::size_t kept = subscription->bytes.load(std::memory_order_relaxed);
  if (subscription->arrived.size() >= subscription->messages_max ||
      kept + bytes > subscription->bytes_max) {
    // order: relaxed  statistic; publishes nothing
    subscription->missed.fetch_add(1, std::memory_order_relaxed);
    missed_.add(1);
    // order: relaxed  statistic; publishes nothing
    if (subscription->missed_now.fetch_add(1, std::memory_order_relaxed) == 0)
      tell(incident::slow, "the subscription to " + subscription->subject + " has no room");
  } else {
    // order: relaxed  statistic; publishes nothing
    event.message.missed = subscription->missed_now.exchange(0, std::memory_order_relaxed);
    // order: relaxed  as above; before the reader can take it off
    subscription->bytes.fetch_add(bytes, std::memory_order_relaxed);
    const std::size_t memory = memory_of(event.message);
    subscription->unread.add(memory);
    const auto take_back = [&] {
      subscription->bytes.fetch_sub(bytes, std::memory_order_relaxed);  // order: relaxed  as above
      subscription->unread.take(memory);
    };
    try {
      static_cast<void>(subscription->arrived.try_send(std::move(event.message)));
    } catch (const channel_closed&) {
      take_back();  // the subscription ended meanwhile
    } catch (...) {
      take_back();
      throw;
    }
  }
  if (event.last) end_subscription(subscription, {});
  end_largest(subscription->unread.book());
}

// The connection has ended: calls that were sent end with this error, and the rest waits for the
// next connection.
void client_state::lose(const wire_ptr& on) {
  endings later;
  {
    std::lock_guard held(mutex_);
    on_ = nullptr;
    const outcome lost =
        outcome::failed(failure::lost,
                        "troupe: nats: the connection to " + on->address.authority() +
                            " ended before the answer: " + on->reason,
                        true);
    const protocol_state::losses all = talk_.end();
    for (const std::uint64_t number : all.requests) take_sent(number, lost, later);
    for (const std::uint64_t number : all.pings) take_sent(number, lost, later);
    writer_.reset();
    if (finishing_) ends_.request_stop();
  }
  later.resolve();
}

// For good: all waiting calls end with the reason.
void client_state::end(const outcome& why) {
  endings later;
  std::vector<subscription_ptr> all;
  {
    std::lock_guard held(mutex_);
    if (on_ != nullptr) {
      on_->ends.request_stop();
      on_ = nullptr;
      static_cast<void>(talk_.end());
    }
    closed_ = why;
    const outcome told =
        why.good ? outcome::failed(failure::closed, "troupe: nats: the connection was closed")
                 : why;
    for (auto& [number, call] : std::exchange(waiting_, {})) later.add(std::move(call.to), told);
    for (auto& [number, to] : std::exchange(sent_, {})) later.add(std::move(to), told);
    for (auto& [number, to] : std::exchange(drains_, {})) later.add(std::move(to), told);
    for (const auto& [sid, subscription] : subscriptions_) all.push_back(subscription);
    for (const subscription_ptr& subscription : all) end_under(*subscription, why);
    TROUPE_INVARIANT(subscriptions_.empty(), "C4");
  }
  later.resolve();
  for (const subscription_ptr& subscription : all) subscription->arrived.close();
  tell(incident::closed, why.text);
}

}  // namespace troupe::nats
