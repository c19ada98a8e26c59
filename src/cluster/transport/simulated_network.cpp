#include "cluster/transport/simulated_network.hpp"

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/transport/network_state.hpp"
#include "troupe/base/error.hpp"
#include "troupe/cluster/error.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::cluster {
namespace {

using state = simulated_network::state;
using state_ptr = std::shared_ptr<state>;

// The state that the calls of one node share, so that each may outlive the transport.
struct simulated_calls {
  simulated_calls(state_ptr network, endpoint_ptr as)
      : net(std::move(network)), self(std::move(as)) {}
  const state_ptr net;
  const endpoint_ptr self;
  std::mutex mutex;
  std::vector<future<>> readers;
};
using simulated_calls_ptr = std::shared_ptr<simulated_calls>;

// A request that its caller may give up.
class open_request {
 public:
  open_request(simulated_calls& all, std::uint64_t number) noexcept : all_(all), number_(number) {}
  open_request(const open_request&) = delete;
  open_request& operator=(const open_request&) = delete;
  ~open_request() { all_.net->forget(*all_.self, number_); }

 private:
  simulated_calls& all_;
  const std::uint64_t number_;
};

task<> read(simulated_calls_ptr all, network_subscription_ptr from, transport::taker handler) {
  for (;;) {
    auto waits = from->arrived.receive();
    std::optional<incoming> got = co_await std::move(waits);
    if (!got || !all->self->alive) break;
    if (handler.try_now(*got)) continue;
    task<> takes = handler(std::move(*got));
    co_await std::move(takes);
  }
}

task<> take_from(simulated_calls_ptr all, std::string subject, std::string queue,
                 transport::taker to) {
  co_await sleep_for(all->net->random_delay());
  network_subscription_ptr from = all->net->take(*all->self, std::move(subject), std::move(queue));
  future<> ends = spawn(read(all, std::move(from), std::move(to)));
  std::lock_guard held(all->mutex);
  all->readers.push_back(std::move(ends));
}

task<> leave_subject(simulated_calls_ptr all, std::string subject, std::string queue) {
  all->net->stop_taking(*all->self, &subject, queue);
  co_return;
}

task<> send_now(simulated_calls_ptr all, std::string subject, std::string bytes) {
  all->net->send(all->self, subject, std::move(bytes));
  co_return;
}

task<std::string> ask(simulated_calls_ptr all, std::string subject, std::string bytes) {
  state::asked begun = all->net->request(all->self, subject, std::move(bytes));
  if (begun.nobody) {
    co_await sleep_for(all->net->random_delay());
    throw error(failure::unreachable, "troupe: cluster: no node takes " + subject);
  }
  const open_request open(*all, begun.number);
  response given = co_await std::move(begun.end);
  if (given.lost)
    throw error(failure::lost,
                "troupe: cluster: the connection ended before the answer to " + subject);
  co_return std::move(given.bytes);
}

task<> answer_now(simulated_calls_ptr all, std::string reply, std::string bytes) {
  all->net->answer(all->self, reply, std::move(bytes));
  co_return;
}

task<> drain(simulated_calls_ptr all) {
  all->net->stop_taking(*all->self, nullptr, {});
  std::vector<future<>> readers;
  {
    std::lock_guard held(all->mutex);
    readers.swap(all->readers);
  }
  for (future<>& reader : readers) co_await std::move(reader);
  all->net->end(*all->self);
}

class in_memory final : public transport {
 public:
  in_memory(state_ptr network, runtime& on, std::string node)
      : all_(std::make_shared<simulated_calls>(network, network->join(std::move(node), on))) {}
  ~in_memory() override { all_->net->end(*all_->self); }

  task<> take(std::string subject, std::string queue, taker to) override {
    return take_from(all_, std::move(subject), std::move(queue), std::move(to));
  }
  task<> leave(std::string subject, std::string queue) override {
    return leave_subject(all_, std::move(subject), std::move(queue));
  }
  task<> send(std::string subject, std::string bytes) override {
    return send_now(all_, std::move(subject), std::move(bytes));
  }
  bool try_send(const std::string& subject, std::string_view bytes) override {
    try {
      all_->net->send(all_->self, subject, std::string(bytes));
      return true;
    } catch (const error&) {
      return false;
    }
  }
  task<std::string> request(std::string subject, std::string bytes) override {
    return ask(all_, std::move(subject), std::move(bytes));
  }
  task<> answer(std::string reply, std::string bytes) override {
    return answer_now(all_, std::move(reply), std::move(bytes));
  }
  bool is_connected() const noexcept override { return all_->net->is_connected(*all_->self); }
  std::size_t bytes_max() const noexcept override { return state::bytes_max; }
  task<> close(bool at_once) override {
    if (!at_once) return drain(all_);
    all_->net->end(*all_->self);
    return nothing();
  }

 private:
  const simulated_calls_ptr all_;
};

}  // namespace

std::unique_ptr<transport> transport_of(const simulated_network& network, runtime& on,
                                        std::string node) {
  return std::make_unique<in_memory>(network.state_, on, std::move(node));
}

simulated_network::simulated_network() : state_(std::make_shared<state>()) {}

void simulated_network::cut(const std::string& node, const std::string& other) {
  cut_one_way(node, other);
  cut_one_way(other, node);
}
void simulated_network::cut_one_way(const std::string& from, const std::string& to) {
  std::lock_guard held(state_->mutex);
  state_->cuts.emplace(from, to);
}
void simulated_network::cut_off(const std::string& node) {
  std::lock_guard held(state_->mutex);
  state_->cut_off.insert(node);
}
void simulated_network::heal() { state_->heal_where(std::nullopt); }
void simulated_network::heal(const std::string& node, const std::string& other) {
  state_->heal_where(std::pair(node, other));
}

void simulated_network::kill(const std::string& node) {
  std::vector<endpoint_ptr> all;
  {
    std::lock_guard held(state_->mutex);
    for (const auto& [number, joined] : state_->endpoints) {
      if (joined->node == node) all.push_back(joined);
    }
  }
  for (const endpoint_ptr& endpoint : all) state_->end(*endpoint);
}

void simulated_network::set_faults(const network_faults& now) {
  if (now.waiting_max == 0) throw option_error("troupe: cluster: waiting_max must be 1 or more");
  std::lock_guard held(state_->mutex);
  state_->faults = now;
}

simulated_network::counts simulated_network::now() const {
  std::lock_guard held(state_->mutex);
  return state_->seen;
}

}  // namespace troupe::cluster
