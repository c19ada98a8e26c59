// The storage of one node of a cluster. All nodes have the same tables; the owner of each shard is
// in cluster_shards, which the cluster's leases write.
//
// Invariants
//   N1  A transaction stores something only while it holds the rows of all shards of its batch, and
//       these name this node with the batch's fences. A node that takes a shard over changes its
//       row, and so waits until the transaction has ended.
//   N2  Before them it locks the node's own row in durable_nodes, which makes last_batch() wait for
//       transactions that a lost connection has left in the server.
#include <algorithm>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "durable_postgres/array_text.hpp"
#include "durable_postgres/batch_writer.hpp"
#include "durable_postgres/in_postgres.hpp"
#include "durable_postgres/tables.hpp"
#include "troupe/durable/error.hpp"
#include "troupe/durable_postgres/postgres_storage.hpp"
#include "troupe/task/when.hpp"

namespace troupe::durable {
namespace {

using postgres::transaction;

// The server ends a transaction whose node has disappeared. Until then no node takes over
// its shards. It is shorter than the usual lease.
constexpr const char* node_silence_max_ms = "3000";

// The node that a row of durable_nodes and the rows of cluster_shards name.
struct identity {
  std::string cluster, life;
  std::int64_t owner = 0;  // of this storage; another one of the same life takes over
};
using identity_ref = std::shared_ptr<const identity>;

[[noreturn]] void refuse_taken() {
  throw store_taken(
      "troupe: durable: another storage of this node of the cluster has been opened in the "
      "PostgreSQL database since; this one can store nothing any more");
}

task<> check_others(transaction& within, identity_ref node) {
  auto asks = within.query_one<std::optional<std::string>>(
      "SELECT min(cluster) FROM durable_nodes WHERE cluster <> $1::text", node->cluster);
  const std::optional<std::optional<std::string>> other = co_await std::move(asks);
  if (other && *other)
    throw usage_error(
        "troupe: durable: the tables of the PostgreSQL database belong to the cluster " + **other +
        ", and this node is of " + node->cluster + "; give each cluster a schema of its own");
}

// Rows of a store without a cluster belong to no known shard: there must be none. The new owner
// shuts that store out first: the store's next transaction waits for the owner's row.
task<> upgrade(transaction& within, identity_ref node) {
  auto takes = within.execute("UPDATE durable_meta SET value = $1::bigint WHERE name = 'owner'",
                              node->owner);
  co_await std::move(takes);
  auto counts = within.query_one<bool>(
      "SELECT EXISTS (SELECT FROM durable_inbox) OR EXISTS (SELECT FROM durable_reminders)");
  const std::optional<bool> has_rows = co_await std::move(counts);
  if (has_rows.value_or(true))
    throw usage_error(
        "troupe: durable: a store without a cluster has left messages or reminders in the "
        "PostgreSQL database; let its program handle them, and remove the reminders, before the "
        "first node opens it");
  auto makes = within.run_script(cluster_tables);
  co_await std::move(makes);
}

task<> make_cluster_tables(transaction& within, identity_ref node) {
  auto makes = make_tables(within);
  co_await std::move(makes);
  auto looks = within.query_one<bool>("SELECT to_regclass('cluster_shards') IS NOT NULL");
  const std::optional<bool> has_shards = co_await std::move(looks);
  if (!has_shards.value_or(false))
    throw usage_error(
        "troupe: durable: the PostgreSQL database has no table cluster_shards; the leases of the "
        "cluster must be in the same schema of the same database");
  auto reads_version = read_meta(within, "version");
  const std::int64_t version = co_await std::move(reads_version);
  if (version > cluster_tables_version)
    throw schema_error("troupe: durable: the tables of the PostgreSQL database have version " +
                       std::to_string(version) + ", and this program reads version " +
                       std::to_string(cluster_tables_version) + "; use the newer program");
  if (version < cluster_tables_version) {
    auto upgrades = upgrade(within, node);
    co_await std::move(upgrades);
  }
  auto checks = check_others(within, node);
  co_await std::move(checks);
}

// The row of a node is kept as long as it may commit: it gets shards only with new numbers.
constexpr const char* reserve =
    "WITH node AS (INSERT INTO durable_nodes AS n "
    "VALUES ($1::text, $2::text, $3::bigint, 0, now()) ON CONFLICT (cluster, life) DO UPDATE "
    "SET at = now() WHERE n.owner = excluded.owner RETURNING 1) "
    "UPDATE durable_meta SET value = greatest(value, (SELECT max(number) FROM durable_inbox)) "
    "+ $4::bigint WHERE name = 'last_number' AND EXISTS (SELECT FROM node) "
    "RETURNING value - $4::bigint";

task<std::uint64_t> reserve_numbers(task<std::optional<std::int64_t>> asks) {
  const std::optional<std::int64_t> before = co_await std::move(asks);
  if (!before) refuse_taken();
  co_return as_number(*before);
}

task<opened_storage> open_node(transaction& within, identity_ref node) {
  auto makes = make_cluster_tables(within, node);
  co_await std::move(makes);
  auto drops = within.execute(
      "DELETE FROM durable_nodes WHERE cluster = $1::text AND life <> $2::text "
      "AND at < now() - interval '30 days' AND NOT EXISTS (SELECT FROM cluster_shards AS s "
      "WHERE s.cluster = $1::text AND s.owner = life)",
      node->cluster, node->life);
  co_await std::move(drops);
  auto takes = within.query_one<std::int64_t>(
      "INSERT INTO durable_nodes AS n VALUES ($1::text, $2::text, $3::bigint, 0, now()) "
      "ON CONFLICT (cluster, life) DO UPDATE SET owner = excluded.owner, at = now() "
      "RETURNING last_batch",
      node->cluster, node->life, node->owner);
  opened_storage found;
  found.last_batch = as_number((co_await std::move(takes)).value_or(0));
  auto reserves = reserve_numbers(within.query_one<std::int64_t>(
      reserve, node->cluster, node->life, node->owner, as_integer(orders_at_once)));
  found.last_order = co_await std::move(reserves);
  auto reads_classes = read_classes(within);
  found.classes = co_await std::move(reads_classes);
  co_return found;
}

task<> begin_batch(transaction& within, identity_ref node, std::uint64_t number) {
  auto asks = within.query_one<std::string>(
      "UPDATE durable_nodes SET last_batch = $4::bigint, at = now() "
      "WHERE cluster = $1::text AND life = $2::text AND owner = $3::bigint "
      "RETURNING set_config('idle_in_transaction_session_timeout', $5::text, true)",
      node->cluster, node->life, node->owner, as_integer(number), node_silence_max_ms);
  const std::optional<std::string> found = co_await std::move(asks);
  if (!found) refuse_taken();
}

// Rows are locked in the order of their numbers, as leases do.
task<> check_shards(transaction& within, identity_ref node, std::vector<held_shard> all) {
  array_text shards;
  for (const held_shard& held : all) shards.add(held.shard);
  auto asks = within.query<std::tuple<std::int64_t, std::int64_t>>(
      "SELECT shard, fence FROM cluster_shards WHERE cluster = $1::text AND owner = $2::text "
      "AND shard = ANY($3::bigint[]) ORDER BY shard FOR SHARE",
      node->cluster, node->life, shards.take());
  const auto rows = co_await std::move(asks);
  std::set<held_shard> mine;
  for (const auto& [shard, fence] : rows)
    mine.insert({static_cast<std::uint32_t>(shard), as_number(fence)});
  std::vector<std::uint32_t> moved;
  for (const held_shard& held : all) {
    if (!mine.contains(held)) moved.push_back(held.shard);
  }
  if (!moved.empty())
    throw shard_moved(std::move(moved),
                      "troupe: durable: another node of the cluster acts for these actors now");
}

task<> write(transaction& within, std::shared_ptr<const batch> all, identity_ref node) {
  std::vector<task<>> statements;
  statements.push_back(begin_batch(within, node, all->number));
  if (!all->shards.empty()) statements.push_back(check_shards(within, node, all->shards));
  for (task<>& statement : batch_writer(within, true).statements_of(*all))
    statements.push_back(std::move(statement));
  all.reset();
  auto runs = when_all(std::move(statements));
  co_await std::move(runs);
}

class node_in_postgres final : public in_postgres {
 public:
  node_in_postgres(runtime& on, const std::string& target, identity node,
                   const postgres::options& chosen)
      : in_postgres(on, target, chosen), identity_(std::make_shared<identity>(std::move(node))) {}

  task<opened_storage> open() override {
    auto now = std::make_shared<identity>(*identity_);
    now->owner = new_owner();
    identity_ = std::move(now);
    const auto body = [node = identity_](transaction& within) { return open_node(within, node); };
    return writes_.in_transaction(body);
  }
  task<std::vector<stored_message>> inbox(std::uint64_t after, std::size_t most) override;
  task<std::vector<stored_reminder>> reminders(std::size_t most) override;
  task<> commit(std::shared_ptr<const batch> all) override {
    const auto body = [all = std::move(all), node = identity_](transaction& within) {
      return write(within, all, node);
    };
    return writes_.in_transaction(body);
  }
  task<std::uint64_t> last_batch() override;
  task<std::uint64_t> reserve_orders() override {
    return reserve_numbers(writes_.query_one<std::int64_t>(reserve, identity_->cluster,
                                                           identity_->life, identity_->owner,
                                                           as_integer(orders_at_once)));
  }
  void act_for(std::vector<std::uint32_t> shards) override {
    array_text column;
    for (const std::uint32_t shard : shards) column.add(shard);
    std::string text = column.take();
    std::lock_guard held(mutex_);
    shards_ = std::move(text);
  }

 private:
  std::string shards() const {
    std::lock_guard held(mutex_);
    return shards_;
  }

  identity_ref identity_;
  mutable std::mutex mutex_;
  std::string shards_ = "{}";  // as a parameter
};

task<std::vector<stored_message>> node_in_postgres::inbox(std::uint64_t after, std::size_t most) {
  auto asks = reading(reads_.query<message_row>(
      "SELECT number, id, named, origin, kind, key, asker, method, signature, arguments, failures, "
      "shard FROM durable_inbox WHERE number > $1::bigint AND shard = ANY($3::integer[]) "
      "ORDER BY number LIMIT $2::bigint",
      as_integer(after), as_integer(most), shards()));
  auto rows = co_await std::move(asks);
  std::vector<stored_message> found;
  for (message_row& row : rows) found.push_back(message_of(std::move(row)));
  co_return found;
}

task<std::vector<stored_reminder>> node_in_postgres::reminders(std::size_t most) {
  auto asks = reading(reads_.query<reminder_row>(
      "SELECT kind, key, name, due, rule, method, signature, arguments, shard "
      "FROM durable_reminders WHERE shard = ANY($2::integer[]) ORDER BY due LIMIT $1::bigint",
      as_integer(most), shards()));
  auto rows = co_await std::move(asks);
  std::vector<stored_reminder> found;
  for (reminder_row& row : rows) found.push_back(reminder_of(std::move(row)));
  co_return found;
}

task<std::uint64_t> node_in_postgres::last_batch() {
  const identity_ref node = identity_;
  auto asks = reading(writes_.query_one<std::tuple<std::int64_t, std::int64_t>>(
      "SELECT owner, last_batch FROM durable_nodes WHERE cluster = $1::text AND life = $2::text "
      "FOR UPDATE",
      node->cluster, node->life));
  const auto found = co_await std::move(asks);
  if (!found || std::get<0>(*found) != node->owner) refuse_taken();
  co_return as_number(std::get<1>(*found));
}

}  // namespace

std::unique_ptr<storage> postgres_storage_of_node(runtime& on, std::string target,
                                                  std::string cluster, std::string life,
                                                  const postgres::options& chosen) {
  identity node{std::move(cluster), std::move(life)};
  return std::make_unique<node_in_postgres>(on, target, std::move(node), chosen);
}

}  // namespace troupe::durable
