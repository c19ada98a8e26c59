// The storage of one node of a cluster in a SQLite file, which its nodes, processes of one machine,
// have in common. The owner of each shard is in cluster_shards, which the cluster's leases write
// into the same file.
//
// Invariant
//   N1  A transaction stores something only if the rows of all shards of its batch name this node
//       with the batch's fences. A file has one writer at a time: no shard therefore changes its
//       owner before the transaction has ended.
#include <algorithm>
#include <mutex>
#include <utility>

#include "durable/storage/in_sqlite.hpp"
#include "troupe/base/error.hpp"
#include "troupe/durable/error.hpp"
#include "troupe/durable/sqlite_storage.hpp"

namespace troupe::durable {
namespace {

using sqlite::session;
using sqlite::session_transaction;
using sqlite::statement;

// As in src/durable_postgres/tables.hpp.
constexpr const char* cluster_tables = R"(
ALTER TABLE durable_inbox ADD COLUMN shard INTEGER NOT NULL DEFAULT 0;
ALTER TABLE durable_reminders ADD COLUMN shard INTEGER NOT NULL DEFAULT 0;
CREATE TABLE durable_nodes (cluster TEXT NOT NULL, life TEXT NOT NULL, owner INTEGER NOT NULL,
  last_batch INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (cluster, life)) WITHOUT ROWID;
DROP INDEX durable_inbox_id;
CREATE INDEX durable_inbox_id ON durable_inbox (id);
DROP INDEX durable_answers_at;
CREATE INDEX durable_answers_at ON durable_answers (at);
UPDATE durable_meta SET value = 2 WHERE name = 'version';
)";

// The node that a row of durable_nodes and the rows of cluster_shards name.
struct identity {
  std::string path, cluster, life;
  std::int64_t owner = 0;  // of this storage; another one of the same life takes over
};
using identity_ref = std::shared_ptr<const identity>;

bool has_rows(session& session, const char* query) {
  statement looks(session, query);
  return looks.step();
}

[[noreturn]] void refuse_taken(const identity& node) {
  throw store_taken("troupe: durable: another storage of this node of the cluster has opened " +
                    node.path + " since; this one can store nothing any more");
}

// Rows of a store without a cluster belong to no known shard: there must be none. The new owner
// shuts that store out.
void upgrade(session& session, const identity& node) {
  if (has_rows(session, "SELECT 1 FROM durable_inbox UNION ALL SELECT 1 FROM durable_reminders"))
    throw usage_error(
        "troupe: durable: a store without a cluster has left messages or reminders "
        "in " +
        node.path +
        "; let its program handle them, and remove the reminders, before the first "
        "node opens it");
  session.run_script(cluster_tables);
  set_meta(session, "owner", node.owner);
}

void make_tables(session& session, const identity& node) {
  session.run_script(sqlite_tables);
  if (!has_rows(session, "SELECT 1 FROM sqlite_master WHERE name = 'cluster_shards'"))
    throw usage_error("troupe: durable: " + node.path +
                      " has no table cluster_shards; the leases of the cluster must be in the same "
                      "file");
  const std::int64_t version = meta(session, "version");
  if (version > cluster_tables_version)
    throw schema_error("troupe: durable: the tables of " + node.path + " have version " +
                       std::to_string(version) + ", and this program reads version " +
                       std::to_string(cluster_tables_version) + "; use the newer program");
  if (version < cluster_tables_version) upgrade(session, node);
  statement others(session, "SELECT cluster FROM durable_nodes WHERE cluster <> ? LIMIT 1");
  others.bind_text(1, node.cluster);
  if (others.step())
    throw usage_error("troupe: durable: the tables of " + node.path + " belong to the cluster " +
                      std::string(others.text(0)) + ", and this node is of " + node.cluster +
                      "; give each cluster a file of its own");
}

// Returns the number of the node's last batch; throws if another storage has taken its place.
std::uint64_t last_batch_of(session& session, const identity& node) {
  statement reads(session,
                  "SELECT owner, last_batch FROM durable_nodes WHERE cluster = ? AND life = ?");
  reads.bind_text(1, node.cluster);
  reads.bind_text(2, node.life);
  if (!reads.step() || reads.integer(0) != node.owner) refuse_taken(node);
  return as_number(reads.integer(1));
}

// The row of a node is kept as long as it may commit.
void drop_old_nodes(session& session, const identity& node) {
  statement drops(session,
                  "DELETE FROM durable_nodes WHERE cluster = $1 AND life <> $2 "
                  "AND at < strftime('%s', 'now') - 30 * 86400 AND NOT EXISTS (SELECT 1 "
                  "FROM cluster_shards AS s WHERE s.cluster = $1 AND s.owner = life)");
  drops.bind_text(1, node.cluster);
  drops.bind_text(2, node.life);
  drops.run();
}

std::uint64_t reserve(session& session, const identity& node) {
  last_batch_of(session, node);
  statement last(session, "SELECT coalesce(max(number), 0) FROM durable_inbox");
  const std::int64_t in_inbox = last.step() ? last.integer(0) : 0;
  const std::int64_t before = std::max(meta(session, "last_number"), in_inbox);
  set_meta(session, "last_number", before + as_integer(orders_at_once));
  return as_number(before);
}

opened_storage open_node(session& session, const identity& node) {
  session_transaction within(session);
  make_tables(session, node);
  drop_old_nodes(session, node);
  statement takes(session,
                  "INSERT INTO durable_nodes VALUES (?, ?, ?, 0, strftime('%s', 'now')) "
                  "ON CONFLICT (cluster, life) DO UPDATE SET owner = excluded.owner, "
                  "at = excluded.at");
  takes.bind_text(1, node.cluster);
  takes.bind_text(2, node.life);
  takes.bind_integer(3, node.owner);
  takes.run();
  opened_storage found;
  found.last_batch = last_batch_of(session, node);
  found.last_order = reserve(session, node);
  found.classes = read_classes(session);
  within.commit();
  return found;
}

void check_shards(session& session, const identity& node, const std::vector<held_shard>& all) {
  std::vector<std::uint32_t> moved;
  statement looks(session,
                  "SELECT 1 FROM cluster_shards WHERE cluster = ? AND shard = ? AND owner = ? "
                  "AND fence = ?");
  for (const held_shard& held : all) {
    looks.bind_text(1, node.cluster);
    looks.bind_integer(2, held.shard);
    looks.bind_text(3, node.life);
    looks.bind_integer(4, as_integer(held.fence));
    if (!looks.step()) moved.push_back(held.shard);
    looks.reset();
  }
  if (!moved.empty())
    throw shard_moved(std::move(moved),
                      "troupe: durable: another node of the cluster acts for these actors now");
}

void write(session& session, const batch& all, const identity& node) {
  session_transaction within(session);
  last_batch_of(session, node);
  check_shards(session, node, all.shards);
  write_rows(session, all, rows_for::cluster);
  statement counts(session,
                   "UPDATE durable_nodes SET last_batch = ?, at = strftime('%s', 'now') "
                   "WHERE cluster = ? AND life = ?");
  counts.bind_integer(1, as_integer(all.number));
  counts.bind_text(2, node.cluster);
  counts.bind_text(3, node.life);
  counts.run();
  within.commit();
}

class node_in_sqlite final : public in_sqlite {
 public:
  node_in_sqlite(runtime& on, std::string cluster, std::string life, std::string path,
                 sqlite::options chosen)
      : in_sqlite(on, path, chosen),
        identity_(std::make_shared<identity>(
            identity{std::move(path), std::move(cluster), std::move(life)})) {}

  task<opened_storage> open() override {
    auto now = std::make_shared<identity>(*identity_);
    now->owner = as_integer(message_id::random().low >> 1);
    identity_ = std::move(now);
    return on_thread(
        [identity = identity_](session& session) { return open_node(session, *identity); });
  }
  task<std::vector<stored_message>> inbox(std::uint64_t after, std::size_t most) override {
    return on_thread([after, most, shards = shards()](session& session) {
      std::vector<stored_message> found;
      statement reads(session,
                      "SELECT * FROM durable_inbox WHERE number > ? "
                      "AND shard IN (SELECT value FROM json_each(?)) ORDER BY number LIMIT ?");
      reads.bind_integer(1, as_integer(after));
      reads.bind_text(2, shards);
      reads.bind_integer(3, static_cast<std::int64_t>(most));
      while (reads.step()) found.push_back(message_of(reads));
      return found;
    });
  }
  task<std::vector<stored_reminder>> reminders(std::size_t most) override {
    return on_thread([most, shards = shards()](session& session) {
      std::vector<stored_reminder> found;
      statement reads(session,
                      "SELECT * FROM durable_reminders WHERE shard IN (SELECT value FROM "
                      "json_each(?)) ORDER BY due LIMIT ?");
      reads.bind_text(1, shards);
      reads.bind_integer(2, static_cast<std::int64_t>(most));
      while (reads.step()) found.push_back(reminder_of(reads));
      return found;
    });
  }
  task<> commit(std::shared_ptr<const batch> all) override {
    return on_thread([all = std::move(all), identity = identity_](session& session) {
      write(session, *all, *identity);
    });
  }
  task<std::uint64_t> last_batch() override {
    return on_thread(
        [identity = identity_](session& session) { return last_batch_of(session, *identity); });
  }
  task<std::uint64_t> reserve_orders() override {
    return on_thread([identity = identity_](session& session) {
      session_transaction within(session);
      const std::uint64_t before = reserve(session, *identity);
      within.commit();
      return before;
    });
  }
  void act_for(std::vector<std::uint32_t> shards) override {
    std::string text = "[";
    for (const std::uint32_t shard : shards)
      text += (text.size() == 1 ? "" : ",") + std::to_string(shard);
    text += "]";
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
  std::string shards_ = "[]";  // as a parameter
};

}  // namespace

std::unique_ptr<storage> sqlite_storage_of_node(runtime& on, std::string path, std::string cluster,
                                                std::string life, sqlite::options chosen) {
  return std::make_unique<node_in_sqlite>(on, std::move(cluster), std::move(life), std::move(path),
                                          chosen);
}

}  // namespace troupe::durable
