// simulation: several nodes of a cluster in one program, over a network and a database whose
// failures the seed determines.
#pragma once

#include "troupe/base/language.hpp"

#include <memory>

#include "troupe/base/time_span.hpp"
#include "troupe/cluster/node.hpp"
#include "troupe/cluster/simulated_network.hpp"

namespace troupe::cluster {

// How the simulated database of leases and durable actors fails. Each number is one in so many
// calls; 0 is never.
struct database_faults {
  database_faults() noexcept {}
  std::uint64_t refuses = 0;  // the call fails and changes nothing
  std::uint64_t loses = 0;    // the call fails; it has taken effect, has not, or takes effect later
  // Each call takes a random time up to this one.
  time_span delay_max{};
};

// The network and the database of simulated nodes in one program. Under the simulated policy the
// seed decides about faults, delays and whose turn is next, so that a failure repeats. Copies are
// the same. Thread: any. Lifetime: with the last copy or node.
//
// Example (declarations):
//     struct Counter {
//       int count = 0;
//       int add(int n) { return count += n; }
//     };
//     troupe::task<> two_nodes(troupe::runtime& rt) {
//       const troupe::cluster::simulation here;
//       const auto kinds = troupe::cluster::kind<Counter, &Counter::add>();
//       troupe::cluster::node one(rt, here, {.name = "one"}, kinds);
//       troupe::cluster::node two(rt, here, {.name = "two"}, kinds);
//       co_await one.ready();
//       co_await two.ready();
//       std::cout << co_await one.get<Counter>("a").ask<&Counter::add>(1)
//                 << co_await two.get<Counter>("a").ask<&Counter::add>(1) << '\n';  // 12
//       here.kill(one);
//     }
class simulation {
 public:
  simulation();

  // In this network the name of a node is its id (`node.self().id`), not options::name.
  const simulated_network& network() const noexcept;
  // From now on.
  void set_faults(const database_faults& now) const;
  // While it is unavailable, or the node is cut off from it, calls of the database fail.
  void set_database_away(bool away) const;
  void cut_off_from_database(const node& victim, bool cut_off) const;
  // The speed of the clocks of the nodes that are made from now on; 1 is exact. Their leases are
  // safe as long as options::margin covers the error of a clock in one lease.
  void set_clock_rate(double of_next) const;
  // Ends the node as a crash does: nothing is handed over, and its state in memory is lost.
  void kill(const node& victim) const;

  struct parts;
  const parts& its_parts() const noexcept { return *parts_; }

 private:
  std::shared_ptr<const parts> parts_;
};

}  // namespace troupe::cluster
