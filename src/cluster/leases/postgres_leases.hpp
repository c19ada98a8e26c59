// postgres_leases: the store of leases in a PostgreSQL database.
//
// A renewal that changes no owner and no member is one statement, which writes one row. All others
// hold the row of the cluster until they are committed: they come one after the other, and a number
// that was seen is never followed by a smaller one.
#pragma once

#include <memory>
#include <string>

#include "cluster/leases/lease_store.hpp"
#include "troupe/runtime/runtime.hpp"

namespace troupe::cluster {

// `target` as for postgres::connection. One connection, which is replaced after each failed
// renewal: a connection that hangs costs no more than the attempt.
std::unique_ptr<lease_store> postgres_leases(runtime& on, std::string target);

}  // namespace troupe::cluster
