// shards_table: the table that says which node has which shards, as the leases of a cluster keep
// it, and tests that move shards in it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "cluster/leases/lease_tables.hpp"
#include "durable_postgres/place.hpp"

namespace troupe::test {

inline constexpr const char* cluster_name = "bank";

class shards_table {
 public:
  explicit shards_table(std::string schema) : schema_(std::move(schema)) {
    postgres_server::get().sql("SET search_path = " + schema_ + "; " +
                               troupe::cluster::sql::tables +
                               "INSERT INTO cluster_shards SELECT '" + cluster_name +
                               "', n, '', 0, 0 FROM generate_series(0, 7) AS n");
  }

  std::unique_ptr<durable::storage> storage_of(runtime& rt, const std::string& life,
                                               const std::string& of = cluster_name) const {
    return durable::postgres_storage_of_node(rt, schema_target(schema_), of, life);
  }
  // The result is the fence. Waits for transactions that hold the shard.
  durable::held_shard give(std::uint32_t shard, const std::string& life) const {
    const std::string fence = sql("UPDATE cluster_shards SET owner = '" + life +
                                  "', fence = fence + 1 WHERE cluster = '" + cluster_name +
                                  "' AND shard = " + std::to_string(shard) + " RETURNING fence");
    return {shard, std::stoull(fence)};
  }
  std::string sql(const std::string& text) const {
    return postgres_server::get().sql("SET search_path = " + schema_ + "; " + text);
  }

 private:
  const std::string schema_;
};

}  // namespace troupe::test
