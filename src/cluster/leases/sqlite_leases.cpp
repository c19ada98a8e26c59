#include "cluster/leases/sqlite_leases.hpp"

#include <time.h>

#include <array>
#include <fstream>
#include <set>
#include <utility>
#include <vector>

#include "cluster/leases/lease_book.hpp"
#include "database/integers.hpp"
#include "troupe/base/error.hpp"
#include "troupe/database/error.hpp"
#include "troupe/sqlite/connection.hpp"

namespace troupe::cluster {
namespace {

using database::as_integer;
using database::as_number;
using sqlite::session;
using sqlite::session_transaction;
using sqlite::statement;
using std::chrono::nanoseconds;

constexpr std::int64_t tables_version = 1;

// As in lease_tables.hpp. `boot` names the start of the machine to whose clock the times refer. The
// addresses of pages have a table of their own: programs of earlier versions may have the file open
// as well, and write member rows without that column.
constexpr const char* table_statements = R"(
CREATE TABLE IF NOT EXISTS clusters (cluster TEXT PRIMARY KEY, tables_version INTEGER NOT NULL,
  version INTEGER NOT NULL, members_changed INTEGER NOT NULL, boot TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS cluster_members (cluster TEXT NOT NULL, id TEXT NOT NULL,
  name TEXT NOT NULL, round INTEGER NOT NULL, until_ns INTEGER NOT NULL, leaving INTEGER NOT NULL,
  PRIMARY KEY (cluster, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS cluster_shards (cluster TEXT NOT NULL, shard INTEGER NOT NULL,
  owner TEXT NOT NULL, fence INTEGER NOT NULL, changed INTEGER NOT NULL,
  PRIMARY KEY (cluster, shard)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS cluster_pages (cluster TEXT NOT NULL, id TEXT NOT NULL,
  page TEXT NOT NULL, PRIMARY KEY (cluster, id)) WITHOUT ROWID;
)";

nanoseconds since_boot() noexcept {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}
std::string this_boot() {
  std::ifstream from("/proc/sys/kernel/random/boot_id");
  std::string id;
  from >> id;
  return id;
}

void make_tables(session& session, const std::string& cluster) {
  session_transaction within(session);
  session.run_script(table_statements);
  statement adds(session, "INSERT OR IGNORE INTO clusters VALUES (?, ?, 1, 1, '')");
  adds.bind_text(1, cluster);
  adds.bind_integer(2, tables_version);
  adds.run();
  statement looks(session, "SELECT tables_version FROM clusters WHERE cluster = ?");
  looks.bind_text(1, cluster);
  if (looks.step() && looks.integer(0) > tables_version)
    throw usage_error("troupe: cluster: the leases in the SQLite file have version " +
                      std::to_string(looks.integer(0)) + ", and this program reads version " +
                      std::to_string(tables_version) + "; use the newer program");
  looks.reset();
  statement adds_shard(session, "INSERT OR IGNORE INTO cluster_shards VALUES (?, ?, '', 0, 0)");
  for (std::uint32_t shard = 0; shard < shard_count; ++shard) {
    adds_shard.bind_text(1, cluster);
    adds_shard.bind_integer(2, shard);
    adds_shard.run();
  }
  within.commit();
}

// The rows of one cluster in the file. Leases from before the last start of the machine have
// expired.
class stored_book {
 public:
  stored_book(session& session, const std::string& cluster) : session_(session), cluster_(cluster) {
    statement reads(session_,
                    "SELECT version, members_changed, boot FROM clusters WHERE cluster = ?");
    reads.bind_text(1, cluster_);
    if (!reads.step())
      throw database::error(database::failure::corrupted, 0,
                            "troupe: cluster: the row of the cluster is missing in the table "
                            "clusters of the SQLite file; start the node again");
    book.version = as_number(reads.integer(0));
    book.members_changed = as_number(reads.integer(1));
    is_of_this_boot_ = reads.text(2) == boot_;
    version_read_ = book.version;
    reads.reset();
    read_members();
    read_shards();
  }

  // Writes the changes since the rows were read, and the row of that member.
  void write(const std::string& self) {
    write_members(self);
    if (book.version == version_read_ && is_of_this_boot_) return;
    statement changes(session_,
                      "UPDATE cluster_shards SET owner = ?, fence = ?, changed = ? "
                      "WHERE cluster = ? AND shard = ?");
    for (std::uint32_t i = 0; i < shard_count; ++i) {
      const lease_book::shard& row = book.shards[i];
      if (row.changed <= version_read_) continue;
      changes.bind_text(1, row.owner);
      changes.bind_integer(2, as_integer(row.fence));
      changes.bind_integer(3, as_integer(row.changed));
      changes.bind_text(4, cluster_);
      changes.bind_integer(5, i);
      changes.run();
    }
    statement counts(
        session_,
        "UPDATE clusters SET version = ?, members_changed = ?, boot = ? WHERE cluster = ?");
    counts.bind_integer(1, as_integer(book.version));
    counts.bind_integer(2, as_integer(book.members_changed));
    counts.bind_text(3, boot_);
    counts.bind_text(4, cluster_);
    counts.run();
  }

  lease_book book;

 private:
  void read_members() {
    statement reads(session_,
                    "SELECT m.id, m.name, m.round, m.until_ns, m.leaving, coalesce(p.page, '') "
                    "FROM cluster_members m LEFT JOIN cluster_pages p USING (cluster, id) "
                    "WHERE m.cluster = ?");
    reads.bind_text(1, cluster_);
    while (reads.step()) {
      lease_book::member member;
      member.row = {std::string(reads.text(0)), std::string(reads.text(1)), reads.integer(4) != 0,
                    std::string(reads.text(5))};
      member.round = as_number(reads.integer(2));
      member.until = is_of_this_boot_ ? nanoseconds(reads.integer(3)) : nanoseconds(-1);
      ids_read_.insert(member.row.id);
      book.members.emplace(member.row.id, std::move(member));
    }
  }
  void read_shards() {
    statement reads(session_,
                    "SELECT shard, owner, fence, changed FROM cluster_shards WHERE cluster = ?");
    reads.bind_text(1, cluster_);
    while (reads.step()) {
      const std::uint64_t shard = as_number(reads.integer(0));
      if (shard >= shard_count) continue;
      book.shards[shard] = {std::string(reads.text(1)), as_number(reads.integer(2)),
                            as_number(reads.integer(3))};
    }
  }
  void write_members(const std::string& self) {
    statement removes(session_, "DELETE FROM cluster_members WHERE cluster = ? AND id = ?");
    for (const std::string& id : ids_read_) {
      if (book.members.contains(id)) continue;
      removes.bind_text(1, cluster_);
      removes.bind_text(2, id);
      removes.run();
    }
    if (book.version != version_read_) drop_pages();
    const auto own = book.members.find(self);
    if (own == book.members.end()) return;
    statement writes(session_, "INSERT OR REPLACE INTO cluster_members VALUES (?, ?, ?, ?, ?, ?)");
    const lease_book::member& member = own->second;
    writes.bind_text(1, cluster_);
    writes.bind_text(2, member.row.id);
    writes.bind_text(3, member.row.name);
    writes.bind_integer(4, as_integer(member.round));
    writes.bind_integer(5, member.until.count());
    writes.bind_integer(6, member.row.is_leaving ? 1 : 0);
    writes.run();
    if (member.row.page.empty() || ids_read_.contains(self)) return;
    statement adds_page(session_, "INSERT OR REPLACE INTO cluster_pages VALUES (?, ?, ?)");
    adds_page.bind_text(1, cluster_);
    adds_page.bind_text(2, self);
    adds_page.bind_text(3, member.row.page);
    adds_page.run();
  }

  // Such rows also remain of members that were removed by a program of a version without pages.
  void drop_pages() {
    statement drops(session_,
                    "DELETE FROM cluster_pages WHERE cluster = ?1 AND id NOT IN "
                    "(SELECT id FROM cluster_members WHERE cluster = ?1)");
    drops.bind_text(1, cluster_);
    drops.run();
  }

  session& session_;
  const std::string& cluster_;
  const std::string boot_ = this_boot();
  bool is_of_this_boot_ = false;
  std::set<std::string> ids_read_;
  std::uint64_t version_read_ = 0;
};

lease_view apply(session& session, const std::string& cluster, const renewal& renewal) {
  session_transaction within(session);
  stored_book stored(session, cluster);
  lease_view view = stored.book.apply(renewal, since_boot());
  stored.write(renewal.self.id);
  within.commit();
  return view;
}

// Each call is one message to the connection's thread.
class in_sqlite final : public lease_store, private sqlite::connection {
 public:
  in_sqlite(runtime& on, std::string path, const sqlite::options& chosen)
      : sqlite::connection(on, std::move(path), chosen) {}

  task<> open(std::string cluster) override {
    cluster_ = cluster;
    return run_on_thread(state(), [cluster = std::move(cluster)](session& session) {
      make_tables(session, cluster);
    });
  }
  task<lease_view> renew(renewal renewal) override {
    return run_on_thread(state(),
                         [cluster = cluster_, renewal = std::move(renewal)](session& session) {
                           return apply(session, cluster, renewal);
                         });
  }

 private:
  std::string cluster_;
};

}  // namespace

std::unique_ptr<lease_store> sqlite_leases(runtime& on, std::string path, sqlite::options chosen) {
  return std::make_unique<in_sqlite>(on, std::move(path), chosen);
}

}  // namespace troupe::cluster
