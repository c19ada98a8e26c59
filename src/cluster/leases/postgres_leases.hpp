// postgres_leases: the store of leases in a PostgreSQL database.
//
// A renewal that changes no owner and no member is one statement, which writes one row. Every other
// renewal locks the cluster's row until it has committed: these renewals run one after the other,
// and no node reads a number and afterwards a smaller one.
#pragma once

#include <memory>
#include <string>

#include "cluster/leases/lease_store.hpp"
#include "troupe/runtime/runtime.hpp"

namespace troupe::cluster {

// `target` as for postgres::connection. The store has one connection, and replaces it after each
// failed renewal: a connection that hangs costs only that renewal.
std::unique_ptr<lease_store> postgres_leases(runtime& on, std::string target);

}  // namespace troupe::cluster
