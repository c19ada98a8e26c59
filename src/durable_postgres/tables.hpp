// tables: the tables of SQLite's storage, with the types of PostgreSQL.
#pragma once

#include <cstdint>

namespace troupe::durable {

inline constexpr std::int64_t tables_version = 1;
// The version of a cluster's tables: a store without one must not open them.
inline constexpr std::int64_t cluster_tables_version = 2;

// Texts are compared by their bytes: it is faster, and an index does not depend on the locales of
// the machine.
inline constexpr const char* tables = R"(
CREATE TABLE durable_meta (name text COLLATE "C" PRIMARY KEY, value bigint NOT NULL);
CREATE TABLE durable_classes (kind text COLLATE "C" NOT NULL, "schema" integer NOT NULL,
  fingerprint bigint NOT NULL, shape text NOT NULL, PRIMARY KEY (kind, "schema"));
CREATE TABLE durable_state (kind text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL,
  "schema" integer NOT NULL, fingerprint bigint NOT NULL, number bigint NOT NULL,
  value bytea NOT NULL, PRIMARY KEY (kind, key));
CREATE TABLE durable_events (kind text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL,
  number bigint NOT NULL, value bytea NOT NULL, PRIMARY KEY (kind, key, number));
CREATE TABLE durable_inbox (number bigint PRIMARY KEY, id bytea NOT NULL,
  named integer NOT NULL, origin integer NOT NULL, kind text NOT NULL, key text NOT NULL,
  asker bytea NOT NULL, method text NOT NULL, signature bigint NOT NULL, arguments bytea NOT NULL,
  failures integer NOT NULL);
CREATE INDEX durable_inbox_id ON durable_inbox (id) WHERE named = 1;
CREATE TABLE durable_answers (id bytea PRIMARY KEY, asker bytea NOT NULL,
  at bigint NOT NULL, failed integer NOT NULL, error_type text NOT NULL, value bytea NOT NULL);
CREATE INDEX durable_answers_asker ON durable_answers (asker)
  WHERE asker <> '\x00000000000000000000000000000000';
CREATE INDEX durable_answers_at ON durable_answers (at)
  WHERE asker = '\x00000000000000000000000000000000';
CREATE TABLE durable_dead (number bigint PRIMARY KEY, id bytea NOT NULL,
  named integer NOT NULL, origin integer NOT NULL, kind text NOT NULL, key text NOT NULL,
  asker bytea NOT NULL, method text NOT NULL, signature bigint NOT NULL, arguments bytea NOT NULL,
  failures integer NOT NULL, error_type text NOT NULL, error text NOT NULL, at bigint NOT NULL);
CREATE TABLE durable_reminders (kind text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL, due bigint NOT NULL, rule text NOT NULL, method text NOT NULL,
  signature bigint NOT NULL, arguments bytea NOT NULL, PRIMARY KEY (kind, key, name));
CREATE INDEX durable_reminders_due ON durable_reminders (due);
INSERT INTO durable_meta VALUES ('version', 1), ('owner', 0), ('last_batch', 0),
  ('last_number', 0);
)";

// The calls of stored answers. The table is added to stores of older versions; their nodes, which
// may run beside this one, do not use it.
inline constexpr const char* calls_table = R"(
CREATE TABLE durable_calls (id bytea PRIMARY KEY, method text NOT NULL, arguments bigint NOT NULL,
  at bigint NOT NULL);
CREATE INDEX durable_calls_at ON durable_calls (at);
)";

// Changes the tables to a cluster's tables. Answers are kept while a message of their id is in the
// inbox, which is searched for each id. Rows of nodes are written all the time, in place: their
// pages have room for it.
inline constexpr const char* cluster_tables = R"(
ALTER TABLE durable_inbox ADD COLUMN shard integer NOT NULL;
ALTER TABLE durable_reminders ADD COLUMN shard integer NOT NULL;
CREATE TABLE durable_nodes (cluster text COLLATE "C" NOT NULL, life text COLLATE "C" NOT NULL,
  owner bigint NOT NULL, last_batch bigint NOT NULL, at timestamptz NOT NULL,
  PRIMARY KEY (cluster, life)) WITH (fillfactor = 30);
DROP INDEX durable_inbox_id;
CREATE INDEX durable_inbox_id ON durable_inbox (id);
DROP INDEX durable_answers_at;
CREATE INDEX durable_answers_at ON durable_answers (at);
UPDATE durable_meta SET value = 2 WHERE name = 'version';
)";

}  // namespace troupe::durable
