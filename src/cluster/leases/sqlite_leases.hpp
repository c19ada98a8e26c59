// sqlite_leases: the store of leases in a SQLite file, for nodes that are processes of one machine.
//
// A renewal reads all members and shards of its cluster, does what it says (lease_book), and writes
// what differs, in one transaction: so renewals come one after the other. The clock of the store is
// that of the machine since it was started, which nobody sets; after a start of the machine all
// leases from before have expired.
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
