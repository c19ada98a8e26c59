// postgres_storage: a store of durable actors in a PostgreSQL database.
#pragma once

#include "troupe/base/language.hpp"

#include <memory>
#include <string>

#include "troupe/durable/storage.hpp"
#include "troupe/postgres/options.hpp"
#include "troupe/runtime/runtime.hpp"

namespace troupe::durable {

// `target` names the database as for postgres::connection. Its tables lie in the first schema of
// the search_path, which may also contain other tables; their names begin with `durable_`, and
// store::open makes them if they do not exist. A commit is as durable as the server's
// synchronous_commit makes it: with the default it is on the disk before any party is notified.
// Both connections are opened again automatically when the server is available again.
//
// A process that is cut off within a commit keeps another process from the store until the server
// notices, at most 10 s. When the network fails silently, this process notices it after 30 s, or
// the time that `tcp_user_timeout` in the target names.
//
// Keys, and other texts, may have any bytes: bytes that PostgreSQL refuses in a text are written as
// \xHH, and a backslash as two. An actor whose class and key have more than 2,000 bytes together is
// refused with usage_error.
//
// Thread: any. Cost: two connections to the server. Errors: option_error for options that make no
// sense; store::open fails with database::error when the server cannot be reached, and with
// usage_error when the database's encoding is not UTF8.
//
// Example (declarations):
//     #include <troupe/durable/store.hpp>
//     struct Account {
//       std::int64_t cents = 0;
//       std::int64_t deposit(std::int64_t amount) { return cents += amount; }
//     };
//     troupe::task<> bank(troupe::runtime& rt) {
//       auto tables = troupe::durable::postgres_storage(rt, "host=db.example dbname=bank");
//       auto store = co_await troupe::durable::store::open(
//           rt, std::move(tables), troupe::durable::kind<Account, &Account::deposit>());
//       std::cout << co_await store.get<Account>("alice").ask<&Account::deposit>(100) << '\n';
//     }
std::unique_ptr<storage> postgres_storage(runtime& on, std::string target,
                                          const postgres::options& chosen = {});

// The same for one node of a cluster. All nodes have one database, and each has a storage of its
// own; `life` is the node's id in the table cluster_shards of the same schema, which the leases of
// the cluster make and write. A transaction stores something only while, by that table, the node
// still acts for all actors that the transaction changes: other nodes may take over before it or
// after it, and wait meanwhile. A node that is silent within a transaction is cut off after 3 s.
//
// The first node that opens a database makes its tables a cluster's, and shuts out a store without
// a cluster that has the database open; no such store can open it any more (schema_error). States,
// events and answers stay. Messages and reminders must not be left, because they have no shard.
//
// Thread: any. Cost: two connections to the server. Errors: as above; opening also fails with
// usage_error when there is no table cluster_shards, when messages or reminders are left, or when
// the tables belong to another cluster.
//
// Example (declarations):
//     std::unique_ptr<troupe::durable::storage> storage_here(troupe::runtime& rt,
//                                                            std::string node_id) {
//       return troupe::durable::postgres_storage_of_node(rt, "host=db.example dbname=bank", "bank",
//                                                        std::move(node_id));
//     }
std::unique_ptr<storage> postgres_storage_of_node(runtime& on, std::string target,
                                                  std::string cluster, std::string life,
                                                  const postgres::options& chosen = {});

}  // namespace troupe::durable
