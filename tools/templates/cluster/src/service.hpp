// service: shopping carts that all programs of a cluster share.
#pragma once

#include <cstddef>
#include <string>
#include <troupe/cluster.hpp>
#include <troupe/troupe.hpp>
#include <vector>

// An actor that is on one node of the cluster at a time; messages from all nodes find it.
struct Cart {
  std::vector<std::string> items;

  // Returns how many items the cart has then.
  std::size_t add(std::string item);
};

// With empty texts the node is alone. With `nats`, the NATS servers, and `database`, which says
// which node owns which actors, it is part of a cluster.
troupe::cluster::node make_node(troupe::runtime& rt, std::string nats = "",
                                std::string database = "");
