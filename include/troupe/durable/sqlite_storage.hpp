// sqlite_storage: a store of durable actors in a SQLite file.
#pragma once

#include "troupe/base/language.hpp"

#include <memory>
#include <string>

#include "troupe/durable/storage.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/sqlite/session.hpp"

namespace troupe::durable {

// The tables lie in the file, which may have others too; their names begin with `durable_`. With
// the default options a commit is on the disk before any party is notified (WAL, synchronous=FULL).
//
// Thread: any. Cost: a thread with a connection of its own. Errors: option_error for options that
// make no sense; the file is opened by store::open.
std::unique_ptr<storage> sqlite_storage(runtime& on, std::string path, sqlite::options chosen = {});

// For one life of a node of a cluster whose nodes are processes of one machine and share the file;
// its leases must be in the same file. `cluster` and `life` name the node in them. cluster::node
// makes it. usage_error, from open(), when the file has no leases, or belongs to another cluster.
std::unique_ptr<storage> sqlite_storage_of_node(runtime& on, std::string path, std::string cluster,
                                                std::string life, sqlite::options chosen = {});

}  // namespace troupe::durable
