// shards_table: the table that says which node has which shards, as the leases of a cluster keep
// it, for tests that move shards in it; in a schema of PostgreSQL or in a SQLite file.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "cluster/leases/lease_tables.hpp"
#include "cluster/leases/sqlite_leases.hpp"
#include "durable_postgres/place.hpp"
#include "support/scratch.hpp"
#include "troupe/durable/sqlite_storage.hpp"

namespace troupe::test {

inline constexpr const char* cluster_name = "bank";

class shards_table {
 public:
  shards_table() = default;
  shards_table(const shards_table&) = delete;
  shards_table& operator=(const shards_table&) = delete;
  virtual ~shards_table() = default;

  virtual std::unique_ptr<durable::storage> storage_of(
      runtime& rt, const std::string& life, const std::string& of = cluster_name) const = 0;
  virtual std::unique_ptr<durable::storage> storage_without_cluster(runtime& rt) const = 0;
  virtual std::string sql(const std::string& text) const = 0;
  // Ends all connections, or holds the write lock of the file for a moment.
  virtual void disturb() const = 0;
  // The result is the fence. Waits for transactions that hold the shard.
  durable::held_shard give(std::uint32_t shard, const std::string& life) const {
    const std::string fence = sql("UPDATE cluster_shards SET owner = '" + life +
                                  "', fence = fence + 1 WHERE cluster = '" + cluster_name +
                                  "' AND shard = " + std::to_string(shard) + " RETURNING fence");
    return {shard, std::stoull(fence)};
  }
};

class postgres_shards_table final : public shards_table {
 public:
  explicit postgres_shards_table(std::string schema) : schema_(std::move(schema)) {
    postgres_server::get().sql("SET search_path = " + schema_ + "; " +
                               troupe::cluster::sql::tables +
                               "INSERT INTO cluster_shards SELECT '" + cluster_name +
                               "', n, '', 0, 0 FROM generate_series(0, 7) AS n");
  }

  std::unique_ptr<durable::storage> storage_of(
      runtime& rt, const std::string& life, const std::string& of = cluster_name) const override {
    return durable::postgres_storage_of_node(rt, schema_target(schema_), of, life);
  }
  std::unique_ptr<durable::storage> storage_without_cluster(runtime& rt) const override {
    return storage_in(schema_, rt);
  }
  std::string sql(const std::string& text) const override {
    return postgres_server::get().sql("SET search_path = " + schema_ + "; " + text);
  }
  void disturb() const override {
    postgres_server::get().sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = "
        "'client backend' AND pid <> pg_backend_pid()");
  }

 private:
  const std::string schema_;
};

class sqlite_shards_table final : public shards_table {
 public:
  sqlite_shards_table() {
    runtime rt({.workers = 1});
    const auto leases = troupe::cluster::sqlite_leases(rt, path_);
    auto opens = rt.spawn(leases->open(cluster_name));
    rt.run();
    opens.get();
  }

  std::unique_ptr<durable::storage> storage_of(
      runtime& rt, const std::string& life, const std::string& of = cluster_name) const override {
    return durable::sqlite_storage_of_node(rt, path_, of, life);
  }
  std::unique_ptr<durable::storage> storage_without_cluster(runtime& rt) const override {
    return durable::sqlite_storage(rt, path_);
  }
  // The result is the first column of the last row.
  std::string sql(const std::string& text) const override {
    return run(text, [] {});
  }
  void disturb() const override {
    // sleeps: others wait for the lock that it holds meanwhile
    run("BEGIN IMMEDIATE", [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
  }

 private:
  // On a connection of its own.
  template <class Then>
  std::string run(const std::string& text, Then then) const {
    sqlite3* db = nullptr;
    std::string last;
    char* failed = nullptr;
    sqlite3_open(path_.c_str(), &db);
    sqlite3_busy_timeout(db, 10'000);
    sqlite3_exec(
        db, text.c_str(),
        [](void* to, int, char** values, char**) {
          *static_cast<std::string*>(to) = values[0] == nullptr ? "" : values[0];
          return 0;
        },
        &last, &failed);
    if (failed != nullptr) ADD_FAILURE() << failed << ": " << text;
    sqlite3_free(failed);
    then();
    sqlite3_close(db);
    return last;
  }

  const scratch folder_;
  const std::string path_ = folder_ / "cluster.db";
};

}  // namespace troupe::test
