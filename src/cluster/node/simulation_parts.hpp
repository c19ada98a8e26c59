// simulation_parts: what the nodes of a simulated cluster share.
#pragma once

#include "cluster/placement/memory_leases.hpp"
#include "troupe/cluster/simulation.hpp"
#include "troupe/durable/simulated_storage.hpp"

namespace troupe::cluster {

struct simulation::parts {
  simulated_network network;
  memory_leases leases;
  durable::simulated_database database;
};

}  // namespace troupe::cluster
