#include "cluster/transport/nats_transport.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "troupe/base/small_mutex.hpp"
#include "troupe/cluster/error.hpp"
#include "troupe/nats/connection.hpp"
#include "troupe/runtime/here.hpp"

namespace troupe::cluster {
namespace {

// The most that one subject may have for a taker that is behind; beyond it messages are lost.
// Windows keep far below it (docs/protocols/cluster_windows.md).
constexpr std::size_t messages_max = 1'000'000;
constexpr std::size_t bytes_max = 256 * 1024 * 1024;

// A server that is silent is given up after three of them: asks wait for no answer meanwhile, and
// another server may be there.
constexpr std::chrono::milliseconds ping_interval_max{2'000};

error as_cluster(const nats::error& failed) {
  if (failed.kind() == nats::failure::too_large) return {failure::too_large, failed.what()};
  if (failed.kind() == nats::failure::denied) return {failure::denied, failed.what()};
  const bool lost = failed.may_have_run() || failed.kind() == nats::failure::lost;
  return {lost ? failure::lost : failure::unreachable, failed.what()};
}

// The state that the tasks of the connection report, and others read often.
struct sight {
  std::atomic<bool> connected{false};
  std::atomic<bool> closed{false};        // for good
  std::atomic<std::size_t> bytes_max{0};  // 0: not asked yet
};

nats::options adapted(nats::options chosen, std::shared_ptr<sight> seen) {
  chosen.reconnect_rounds = std::numeric_limits<unsigned>::max();
  chosen.request_timeout = std::chrono::hours(24 * 365);  // the call context limits it
  chosen.send_trace = false;                              // the frames of nodes have it
  chosen.ping_interval =
      std::min<std::chrono::nanoseconds>(chosen.ping_interval, ping_interval_max);
  auto tell = std::move(chosen.on_incident);
  chosen.on_incident = [tell, seen](nats::incident incident, std::string_view text) {
    using enum nats::incident;
    // order: relaxed  hints; the state may have changed since
    if (incident == connected) seen->bytes_max.store(0, std::memory_order_relaxed);
    if (incident == connected || incident == lost || incident == closed)
      seen->connected.store(incident == connected, std::memory_order_relaxed);
    if (incident == closed) seen->closed.store(true, std::memory_order_relaxed);
    if (tell) tell(incident, text);
  };
  return chosen;
}

// The state that the calls share, so that each may outlive the transport.
struct nats_calls {
  nats_calls(runtime& on, std::string_view servers, const nats::options& chosen)
      : bus(on, servers, adapted(chosen, seen)) {}

  struct reader {
    std::shared_ptr<nats::subscription> from;
    future<> ends;
  };
  const std::shared_ptr<sight> seen = std::make_shared<sight>();
  const nats::connection bus;
  std::atomic<bool> ended{false};  // nothing is taken any more
  base::small_mutex mutex;
  std::multimap<std::pair<std::string, std::string>, reader> readers;  // by subject and queue
};
using nats_calls_ptr = std::shared_ptr<nats_calls>;

// The connection. When no server was there at first, or none took us, it is closed for good; then
// the next call of take() makes another connection. Once something was taken it stays.
class connection_slot {
 public:
  connection_slot(runtime& on, std::string servers, nats::options chosen)
      : on_(on), servers_(std::move(servers)), chosen_(std::move(chosen)), all_(make()) {}

  nats_calls_ptr get() const {
    // order: acquire  all_ does not change any more; pairs with keep/release
    if (kept_.load(std::memory_order_acquire)) return all_;
    std::lock_guard held(mutex_);
    return all_;
  }
  nats_calls_ptr get_for_take() {
    if (kept_.load(std::memory_order_acquire)) return all_;  // order: acquire  as above
    nats_calls_ptr before;
    std::lock_guard held(mutex_);
    // order: relaxed  a hint: the next attempt sees a missed change
    if (!ends_ && all_->seen->closed.load(std::memory_order_relaxed))
      before = std::exchange(all_, make());
    return all_;
  }
  void keep() {
    std::lock_guard held(mutex_);
    kept_.store(true, std::memory_order_release);  // order: release  pairs with get/acquire
  }
  // No other connection is made from now on. Returns the last one.
  nats_calls_ptr end() noexcept {
    std::lock_guard held(mutex_);
    ends_ = true;
    return all_;
  }

 private:
  nats_calls_ptr make() const { return std::make_shared<nats_calls>(on_, servers_, chosen_); }

  runtime& on_;
  const std::string servers_;
  const nats::options chosen_;
  mutable std::mutex mutex_;
  std::atomic<bool> kept_{false};
  bool ends_ = false;
  nats_calls_ptr all_;  // under the mutex until it is kept
};

task<> failing(error how) {
  throw how;
  co_return;
}

task<> read(nats_calls_ptr all, std::shared_ptr<nats::subscription> from,
            transport::taker handler) {
  for (;;) {
    task<std::optional<nats::message>> waits = from->next();
    std::optional<nats::message> got = co_await std::move(waits);
    // order: relaxed  whoever ends does not wait for this
    if (!got || all->ended.load(std::memory_order_relaxed)) break;
    incoming message;
    message.bytes = std::move(got->payload);
    message.reply = std::move(got->reply);
    if (handler.try_now(message)) continue;
    task<> takes = handler(std::move(message));
    co_await std::move(takes);
  }
}

// Done when the server has taken all that was sent before, over this connection or the next.
task<> flush(nats_calls_ptr all) {
  for (;;) {
    try {
      task<> flushes = all->bus.flush();
      co_await std::move(flushes);
      co_return;
    } catch (const nats::error& failed) {
      if (failed.kind() != nats::failure::lost) throw;
    }
  }
}

task<> take_from(nats_calls_ptr all, std::string subject, std::string queue, transport::taker to) {
  nats::subscribe_options chosen;
  chosen.queue = queue;
  chosen.messages_max = messages_max;
  chosen.bytes_max = bytes_max;
  try {
    task<nats::subscription> subscribes = all->bus.subscribe(subject, chosen);
    auto from = std::make_shared<nats::subscription>(co_await std::move(subscribes));
    task<> flushes = flush(all);
    co_await std::move(flushes);
    if (from->has_ended())
      throw error(
          failure::denied,
          "troupe: cluster: the NATS server does not permit this node to subscribe to " + subject);
    future<> ends = spawn(read(all, from, std::move(to)));
    std::lock_guard held(all->mutex);
    all->readers.emplace(std::pair(std::move(subject), std::move(queue)),
                         nats_calls::reader{std::move(from), std::move(ends)});
  } catch (const nats::error& failed) {
    throw as_cluster(failed);
  }
}

task<> take_in(std::shared_ptr<connection_slot> slot, std::string subject, std::string queue,
               transport::taker to) {
  auto takes = take_from(slot->get_for_take(), std::move(subject), std::move(queue), std::move(to));
  co_await std::move(takes);
  slot->keep();
}

task<> leave_subject(nats_calls_ptr all, std::string subject, std::string queue) {
  std::vector<nats_calls::reader> left;
  {
    std::lock_guard held(all->mutex);
    const auto [begin, end] = all->readers.equal_range({subject, queue});
    for (auto at = begin; at != end; ++at) left.push_back(std::move(at->second));
    all->readers.erase(begin, end);
  }
  try {
    for (nats_calls::reader& reader : left) {
      task<> drains = reader.from->drain();
      co_await std::move(drains);
    }
  } catch (const nats::error&) {
    // The connection was closed: nothing comes any more, either.
  }
}

task<> send_later(nats_calls_ptr all, std::string subject, std::string bytes) {
  try {
    task<> sends = all->bus.publish(nats::message(std::move(subject), std::move(bytes)));
    co_await std::move(sends);
  } catch (const nats::error& failed) {
    throw as_cluster(failed);
  }
}

task<> answer_later(nats_calls_ptr all, std::string reply, std::string bytes) {
  try {
    task<> sends = all->bus.publish(nats::message(std::move(reply), std::move(bytes)));
    co_await std::move(sends);
  } catch (const nats::error&) {
    // It is lost.
  }
}

task<std::string> ask(nats_calls_ptr all, std::string subject, std::string bytes) {
  try {
    task<nats::message> asks =
        all->bus.request(nats::message(std::move(subject), std::move(bytes)));
    nats::message got = co_await std::move(asks);
    co_return std::move(got.payload);
  } catch (const nats::error& failed) {
    throw as_cluster(failed);
  }
}

task<> drain(nats_calls_ptr all) {
  try {
    task<> drains = all->bus.drain();
    co_await std::move(drains);
  } catch (const nats::error&) {
    // It was closed already.
  }
  decltype(nats_calls::readers) left;
  {
    std::lock_guard held(all->mutex);
    left.swap(all->readers);
  }
  for (auto& [subject, reader] : left) co_await std::move(reader.ends);
  all->seen->connected.store(false, std::memory_order_relaxed);  // order: relaxed  a hint
}

class over_nats final : public transport {
 public:
  over_nats(runtime& on, const std::string& servers, const nats::options& chosen)
      : slot_(std::make_shared<connection_slot>(on, servers, chosen)) {}
  ~over_nats() override { end(); }

  task<> take(std::string subject, std::string queue, taker to) override {
    return take_in(slot_, std::move(subject), std::move(queue), std::move(to));
  }
  task<> leave(std::string subject, std::string queue) override {
    return leave_subject(slot_->get(), std::move(subject), std::move(queue));
  }

  task<> send(std::string subject, std::string bytes) override {
    try {
      if (slot_->get()->bus.try_publish(subject, bytes)) return nothing();
    } catch (const nats::error& failed) {
      return failing(as_cluster(failed));
    }
    return send_later(slot_->get(), std::move(subject), std::move(bytes));
  }
  bool try_send(const std::string& subject, std::string_view bytes) override {
    try {
      return slot_->get()->bus.try_publish(subject, bytes);
    } catch (const nats::error&) {
      return false;
    }
  }
  bool try_send_joined(const std::string& subject, std::string_view lead, std::string_view head,
                       std::string_view body) override {
    try {
      return slot_->get()->bus.try_publish_joined(subject, lead, {head, body});
    } catch (const nats::error&) {
      return false;
    }
  }
  task<std::string> request(std::string subject, std::string bytes) override {
    return ask(slot_->get(), std::move(subject), std::move(bytes));
  }
  task<> answer(std::string reply, std::string bytes) override {
    try {
      if (slot_->get()->bus.try_publish(reply, bytes)) return nothing();
    } catch (const nats::error&) {
      return nothing();
    }
    return answer_later(slot_->get(), std::move(reply), std::move(bytes));
  }

  bool is_connected() const noexcept override {
    // order: relaxed  a hint
    return slot_->get()->seen->connected.load(std::memory_order_relaxed);
  }
  std::size_t bytes_max() const noexcept override {
    const nats_calls_ptr all = slot_->get();
    // order: relaxed  a number that publishes nothing
    std::size_t known = all->seen->bytes_max.load(std::memory_order_relaxed);
    if (known != 0) return known;
    known = all->bus.now().payload_bytes_max;
    if (known == 0) return default_bytes_max;
    all->seen->bytes_max.store(known, std::memory_order_relaxed);  // order: relaxed  as above
    return known;
  }
  task<> close(bool at_once) override {
    if (!at_once) return drain(slot_->end());
    end();
    return nothing();
  }

 private:
  static constexpr std::size_t default_bytes_max = 1024 * 1024;  // of nats-server

  void end() noexcept {
    const nats_calls_ptr all = slot_->end();
    all->ended.store(true, std::memory_order_relaxed);  // order: relaxed  its readers see it soon
    all->bus.close();
  }

  const std::shared_ptr<connection_slot> slot_;
};

}  // namespace

std::unique_ptr<transport> nats_transport(runtime& on, const std::string& servers,
                                          const nats::options& chosen) {
  return std::make_unique<over_nats>(on, servers, chosen);
}

}  // namespace troupe::cluster
