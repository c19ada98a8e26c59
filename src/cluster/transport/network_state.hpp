// network_state: the state that the nodes of one simulated network share: subscriptions, messages
// in flight, and cut connections.
//
// Threads: any. `mutex` guards all of it but the channels; nothing is resolved or spawned under it.
// Invariants
//   W1  a subscription's channel is closed when its end has been put aside (`ends`) and nothing is
//       on its way to it, or when its endpoint has ended.
//   W2  a link that has parcels is carried by one task, or it is held by a cut.
//   W3  the party that takes a request out of `requests` resolves it: it ends once.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/transport/transport.hpp"
#include "troupe/cluster/simulated_network.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/sync/channel.hpp"
#include "troupe/task/future.hpp"

namespace troupe::cluster {

// One life of a node's connection.
struct endpoint;
using endpoint_ptr = std::shared_ptr<endpoint>;

struct network_subscription {
  network_subscription(endpoint& caller, std::string to, std::string group)
      : taker(caller), subject(std::move(to)), queue(std::move(group)) {}
  endpoint& taker;
  const std::string subject, queue;
  const channel<incoming> arrived = channel<incoming>::unbounded();
  std::size_t on_the_way = 0;
  bool ends = false;  // it gets nothing new
};
using network_subscription_ptr = std::shared_ptr<network_subscription>;

struct response {
  response() noexcept {}
  bool lost = false;
  std::string bytes;
};

struct endpoint {
  endpoint(std::string name, runtime& on, std::uint64_t id)
      : node(std::move(name)), on(on), number(id) {}
  struct request {
    promise<response> asker;
    std::vector<std::uint64_t> asked;  // the numbers of the endpoints that may answer
  };
  const std::string node;
  runtime& on;  // not used after the end
  const std::uint64_t number;
  std::atomic<bool> alive{true};  // written under the mutex
  std::vector<network_subscription_ptr> takes;
  std::map<std::uint64_t, request> requests;
};

struct parcel {
  parcel() noexcept {}
  network_subscription_ptr into;  // null: an answer to `request`
  std::uint64_t request = 0;
  incoming message;
  std::chrono::nanoseconds due{0};
};

// The way from one endpoint to another.
struct network_link {
  network_link(endpoint_ptr sender, endpoint_ptr receiver)
      : from(std::move(sender)), target(std::move(receiver)) {}
  const endpoint_ptr from, target;
  std::deque<parcel> parcels;
  std::chrono::nanoseconds last_due{0};
  bool carried = false;
};
using network_link_ptr = std::shared_ptr<network_link>;

struct simulated_network::state : std::enable_shared_from_this<simulated_network::state> {
  // The actions that are due once the mutex is free.
  struct afterwards {
    void end_lost(promise<response>&& asker) {
      response given;
      given.lost = true;
      ended.emplace_back(std::move(asker), std::move(given));
    }
    void run(const std::shared_ptr<state>& network);
    std::vector<network_link_ptr> to_carry;
    std::vector<std::pair<promise<response>, response>> ended;
    std::vector<network_subscription_ptr> closed;
  };

  endpoint_ptr join(std::string node, runtime& on);
  network_subscription_ptr take(endpoint& caller, std::string subject, std::string queue);
  // Throws error: unreachable, too_large.
  void send(const endpoint_ptr& caller, const std::string& subject, std::string bytes);
  struct asked {
    std::uint64_t number = 0;
    bool nobody = false;  // it ends as unreachable
    future<response> end;
  };
  asked request(const endpoint_ptr& caller, const std::string& subject, std::string bytes);
  void forget(endpoint& caller, std::uint64_t request) noexcept;
  void answer(const endpoint_ptr& caller, const std::string& reply, std::string bytes);
  // Messages that are sent from now on are not taken.
  void stop_taking(endpoint& caller, const std::string* subject, const std::string& queue);
  void end(endpoint& ended);

  bool is_connected(const endpoint& caller) const;
  std::chrono::nanoseconds random_delay() const;
  void heal_where(const std::optional<std::pair<std::string, std::string>>& between);

  static constexpr std::size_t bytes_max = 1024 * 1024;

  mutable std::mutex mutex;
  network_faults faults;
  counts seen;
  std::set<std::pair<std::string, std::string>> cuts;  // from, to
  std::set<std::string> cut_off;
  std::map<std::uint64_t, endpoint_ptr> endpoints;  // those that are alive
  std::map<std::pair<std::uint64_t, std::uint64_t>, network_link_ptr> links;
  std::uint64_t last_endpoint = 0, last_request = 0;

 private:
  static task<> carry(std::shared_ptr<state> self, network_link_ptr link);
  std::optional<std::chrono::nanoseconds> carry_first(network_link& link, afterwards& later);

  // Under the mutex.
  void check(const endpoint& caller, const std::string& subject, std::size_t bytes) const;
  bool passes(const endpoint& from, const endpoint& target) const;
  std::vector<network_subscription_ptr> takers_of(const endpoint& caller, std::string_view subject,
                                                  bool& anybody) const;
  void post(const endpoint_ptr& from, const endpoint_ptr& target, const parcel& sent,
            afterwards& later);
  void put(network_link& on, parcel added);
  void arrive(parcel& arriving, afterwards& later);
  void arrive_answer(endpoint& asker, parcel& arriving, afterwards& later);
  void drop(parcel& arriving, afterwards& later);
};

// Whether a message to `subject` reaches the takers of `pattern`: `*` matches one token and a last
// `>` the rest.
bool matches(std::string_view pattern, std::string_view subject) noexcept;

}  // namespace troupe::cluster
