// in_sqlite: a store's data in a SQLite file: the code that the storage of one process shares with
// the storage of a node of a cluster.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "database/integers.hpp"
#include "troupe/durable/storage.hpp"
#include "troupe/sqlite/connection.hpp"

namespace troupe::durable {

inline constexpr std::int64_t tables_version = 1, cluster_tables_version = 2;

// The calls of stored answers have a table of their own: nodes of older versions write rows of the
// others beside this one, and give the values of all columns.
inline constexpr const char* sqlite_tables = R"(
CREATE TABLE IF NOT EXISTS durable_meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL)
  WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS durable_classes (kind TEXT NOT NULL, "schema" INTEGER NOT NULL,
  fingerprint INTEGER NOT NULL, shape TEXT NOT NULL, PRIMARY KEY (kind, "schema")) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS durable_state (kind TEXT NOT NULL, key TEXT NOT NULL,
  "schema" INTEGER NOT NULL, fingerprint INTEGER NOT NULL, number INTEGER NOT NULL,
  value BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS durable_events (kind TEXT NOT NULL, key TEXT NOT NULL,
  number INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY (kind, key, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS durable_inbox (number INTEGER PRIMARY KEY, id BLOB NOT NULL,
  named INTEGER NOT NULL, origin INTEGER NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,
  asker BLOB NOT NULL, method TEXT NOT NULL, signature INTEGER NOT NULL, arguments BLOB NOT NULL,
  failures INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS durable_inbox_id ON durable_inbox (id) WHERE named = 1;
CREATE TABLE IF NOT EXISTS durable_answers (id BLOB PRIMARY KEY, asker BLOB NOT NULL,
  at INTEGER NOT NULL, failed INTEGER NOT NULL, error_type TEXT NOT NULL, value BLOB NOT NULL)
  WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS durable_answers_asker ON durable_answers (asker)
  WHERE asker <> zeroblob(16);
CREATE INDEX IF NOT EXISTS durable_answers_at ON durable_answers (at) WHERE asker = zeroblob(16);
CREATE TABLE IF NOT EXISTS durable_dead (number INTEGER PRIMARY KEY, id BLOB NOT NULL,
  named INTEGER NOT NULL, origin INTEGER NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,
  asker BLOB NOT NULL, method TEXT NOT NULL, signature INTEGER NOT NULL, arguments BLOB NOT NULL,
  failures INTEGER NOT NULL, error_type TEXT NOT NULL, error TEXT NOT NULL, at INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS durable_reminders (kind TEXT NOT NULL, key TEXT NOT NULL,
  name TEXT NOT NULL, due INTEGER NOT NULL, rule TEXT NOT NULL, method TEXT NOT NULL,
  signature INTEGER NOT NULL, arguments BLOB NOT NULL, PRIMARY KEY (kind, key, name)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS durable_reminders_due ON durable_reminders (due);
CREATE TABLE IF NOT EXISTS durable_calls (id BLOB PRIMARY KEY, method TEXT NOT NULL,
  arguments INTEGER NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS durable_calls_at ON durable_calls (at);
INSERT OR IGNORE INTO durable_meta VALUES ('version', 1), ('owner', 0), ('last_batch', 0),
  ('last_number', 0);
)";

using database::as_integer;
using database::as_number;

// The functions are called on the session's thread.

// Of durable_meta; 0: there is no such row.
std::int64_t meta(sqlite::session& session, const char* name);
void set_meta(sqlite::session& session, const char* name, std::int64_t value);
std::vector<class_shape> read_classes(sqlite::session& session);
// Of all columns of a row, with its shard if the table has this column.
stored_message message_of(const sqlite::statement& row);
stored_reminder reminder_of(const sqlite::statement& row);

// Whose tables they are: the tables of a cluster have the shard of each message and reminder.
enum class rows_for : std::uint8_t { one_process, cluster };
// All rows of a batch, within a transaction.
void write_rows(sqlite::session& session, const batch& all, rows_for user);

// Each call is one message to the connection's thread.
class in_sqlite : public storage, protected sqlite::connection {
 public:
  in_sqlite(runtime& on, std::string path, sqlite::options chosen)
      : sqlite::connection(on, path, chosen), path_(std::move(path)) {}

  std::string name() const override { return path_; }
  task<opened_storage> open() override;
  task<> keep_classes(std::vector<class_shape> added) override;
  task<std::optional<stored_state>> load(actor_name actor) override;
  task<std::vector<std::string>> keys(std::string kind, key_range range) override;
  task<std::vector<stored_message>> inbox(std::uint64_t after, std::size_t most) override;
  task<found_message> find(message_id id) override;
  task<std::vector<stored_reminder>> reminders(std::size_t most) override;
  task<> commit(std::shared_ptr<const batch> all) override;
  task<std::uint64_t> last_batch() override;

 protected:
  template <class Action>
  auto on_thread(Action action) {
    return run_on_thread(state(), std::move(action));
  }

  const std::string path_;
  std::int64_t owner_ = 0;
};

}  // namespace troupe::durable
