// sqlite_leases: the store of leases in a SQLite file, for nodes that are processes of one machine.
//
// A renewal reads all members and shards of its cluster, applies the request (lease_book), and
// writes the differences, in one transaction, which makes renewals sequential. The store uses the
// machine's clock since its start, which cannot be set; after the machine restarts, all leases from
// before have expired.
#pragma once

#include <memory>
#include <string>

#include "cluster/leases/lease_store.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/sqlite/session.hpp"

namespace troupe::cluster {

// One connection, with a thread of its own. The file may also hold the tables of durable actors.
std::unique_ptr<lease_store> sqlite_leases(runtime& on, std::string path,
                                           sqlite::options chosen = {});

}  // namespace troupe::cluster
