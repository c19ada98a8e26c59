// simulated_network: the network between the nodes of a cluster in one simulated program, with the
// faults that a test chooses.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "troupe/base/time_span.hpp"

namespace troupe {
class runtime;
}

namespace troupe::cluster {

class transport;

// How the network fails. Each number is one in so many messages; 0 is never. A plain value.
struct network_faults {
  network_faults() noexcept {}
  std::uint64_t loses = 0;
  std::uint64_t duplicates = 0;
  // Each message takes a random time up to this one. Messages from one node to another still arrive
  // in order.
  time_span delay_max{};
  // Messages from one node to another may also change their order. NATS does that only with
  // messages that were in transit when a connection was lost.
  bool reorders = false;
  // True: a message across a cut waits for heal() instead of being lost, as with TCP during a short
  // cut.
  bool holds = false;
  // True: an ask to a node that is killed gets no error, as with NATS, and ends by its deadline.
  // False: it fails with failure::lost.
  bool silent_deaths = false;
  // How many messages may wait for one subscription of a node; more are lost. 1 or more.
  std::size_t waiting_max = 1'000'000;
};

// The network of nodes that run in one program under the simulated policy, whose seed decides about
// faults and delays. cut(), heal() and kill() take the name that the program gave to a node; a node
// that is started again keeps its cuts. Copies are the same network.
//
// Thread: any. Lifetime: the network lives as long as any copy or any node of it.
//
// Example:
//     troupe::cluster::simulated_network net;
//     troupe::cluster::network_faults rough;
//     rough.loses = 100;
//     rough.delay_max = std::chrono::milliseconds(20);
//     net.set_faults(rough);
//     net.cut("one", "two");
//     net.heal();
class simulated_network {
 public:
  simulated_network();

  // Nothing passes between these two, until heal(). Asks to nodes behind a cut wait until their
  // deadline.
  void cut(const std::string& node, const std::string& other);
  void cut_one_way(const std::string& from, const std::string& to);
  // Nothing passes between this node and all others.
  void cut_off(const std::string& node);
  // Ends all cuts; or those between two nodes.
  void heal();
  void heal(const std::string& node, const std::string& other);

  // Ends the connection of this node at once: it neither sends nor receives any more.
  void kill(const std::string& node);
  // From now on.
  void set_faults(const network_faults& now);

  struct counts {
    counts() noexcept {}
    std::uint64_t sent = 0;       // to each receiver, answers too
    std::uint64_t delivered = 0;  // duplicates too
    std::uint64_t lost = 0;
  };
  counts now() const;

  struct state;

 private:
  friend std::unique_ptr<transport> transport_of(const simulated_network& network, runtime& on,
                                                 std::string node);
  std::shared_ptr<state> state_;
};

}  // namespace troupe::cluster
