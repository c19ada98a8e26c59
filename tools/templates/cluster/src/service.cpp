#include "service.hpp"

#include <utility>

namespace cluster = troupe::cluster;

std::size_t Cart::add(std::string item) {
  items.push_back(std::move(item));
  return items.size();
}

cluster::node make_node(troupe::runtime& rt, std::string nats, std::string database) {
  cluster::options options;
  options.nats = std::move(nats);
  options.database = std::move(database);
  options.name = "shop";
  return cluster::node(rt, std::move(options), cluster::kind<Cart, &Cart::add>());
}
