// options: the settings of a node of a cluster, given when it is made.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "troupe/base/time_span.hpp"
#include "troupe/nats/options.hpp"

namespace troupe::cluster {

// A value that makes no sense is an option_error.
struct options {
  // The NATS servers by which nodes reach each other: "nats://one:4222,two". Empty: this node
  // is alone, in one process, and `database` must also be empty.
  std::string nats{};
  // The node's name, for people. Two nodes may have the same name.
  std::string name = "node";
  // The cluster's name: nodes see only nodes of the same cluster. Letters, digits, `-` and `_`.
  std::string cluster = "troupe";
  // The database that records the node that owns each shard, and keeps the durable actors.
  // PostgreSQL: as for postgres::connection. For nodes that are processes of one machine also
  // "sqlite:FILE", with the path of a file that all of them open; on a file system of the machine
  // itself.
  std::string database{};
  // The SQLite file in which a node that is alone keeps its durable actors.
  std::string store{};
  // Credentials and TLS of NATS, and the behaviour after a lost connection.
  nats::options connection{};
  // The address of this node's page (add_observe_page) as the operators' browsers reach it:
  // "https://shop-3.internal/troupe/". The pages of the other nodes link to it. Default none. It
  // begins with http:// or https:// and has at most 1,000 printable ASCII characters.
  std::string page{};

  // How long an ask waits for its answer, unless with_deadline sets a shorter time. More than 0.
  time_span ask_timeout = std::chrono::seconds(10);
  // The time for which this node owns its shards after each answer of the database. If the node
  // fails, another node takes the shards over after this time. 1 s or more.
  time_span lease = std::chrono::seconds(6);
  // The node stops acting this long before its lease ends. It must cover the drift between the
  // clocks of this machine and of the database in one lease, and the time that an answer travels
  // inside this machine. Less than half of the lease.
  time_span margin = std::chrono::milliseconds(600);
  // How long an actor may be idle before it is unloaded: its object is destroyed. 1 ms or more.
  time_span idle_max = std::chrono::seconds(60);
  // Maximum number of idle and busy actors on this node; beyond it, the least recently used ones
  // are unloaded. Busy actors are not unloaded. 1 or more.
  std::size_t actors_max = 1'000'000;
  // How many messages of this node may wait for other nodes; one more fails with failure::full. 1
  // or more.
  std::size_t waiting_max = 100'000;
  // How many messages of other nodes are handled here at the same time; more wait at their senders.
  // 1 or more.
  std::size_t served_max = 10'000;
  // How long stop() waits for handlers that run. 0 or more.
  time_span drain_max = std::chrono::seconds(30);
};

}  // namespace troupe::cluster
