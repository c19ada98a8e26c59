// simulation_parts: the state that the nodes of a simulated cluster share.
#pragma once

#include <atomic>

#include "cluster/leases/memory_leases.hpp"
#include "troupe/cluster/simulation.hpp"
#include "troupe/durable/simulated_storage.hpp"

namespace troupe::cluster {

struct simulation::parts {
  simulated_network network;
  memory_leases leases;
  durable::simulated_database database;
  // order: relaxed  each is set before the nodes are made that look at it.
  mutable std::atomic<double> clock_rate{1};
  // False is a mistake, which tests must find: a stale owner can commit.
  mutable std::atomic<bool> checks_fences{true};
};

}  // namespace troupe::cluster
