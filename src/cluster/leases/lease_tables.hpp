// lease_tables: the tables of leases in PostgreSQL, and the statements of a renewal.
#pragma once

#include <cstdint>

namespace troupe::cluster::sql {

inline constexpr std::int64_t tables_version = 1;

// `version` of a cluster is the number of its last change; `changed` of a shard, of its own.
// Rows of members are written all the time, in place: their pages have room for it.
inline constexpr const char* tables = R"(
CREATE TABLE clusters (cluster text COLLATE "C" PRIMARY KEY, tables_version bigint NOT NULL,
  version bigint NOT NULL, members_changed bigint NOT NULL);
CREATE TABLE cluster_members (cluster text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
  name text NOT NULL, round bigint NOT NULL, until timestamptz NOT NULL,
  leaving boolean NOT NULL, PRIMARY KEY (cluster, id))
  WITH (fillfactor = 30);
CREATE TABLE cluster_shards (cluster text COLLATE "C" NOT NULL, shard bigint NOT NULL,
  owner text COLLATE "C" NOT NULL, fence bigint NOT NULL, changed bigint NOT NULL,
  PRIMARY KEY (cluster, shard));
)";

// The addresses of pages have a table of their own. To add a column to the members would need their
// owner's rights, and would stop the renewals of all nodes while another session reads the table.
// A program that may neither make that table nor use it shows no pages of other nodes.
inline constexpr const char* may_make_pages =
    "SELECT to_regclass('cluster_pages') IS NULL AND "
    "has_schema_privilege(current_schema(), 'CREATE')";
inline constexpr const char* make_pages =
    "CREATE TABLE cluster_pages (cluster text COLLATE \"C\" NOT NULL, id text COLLATE \"C\" NOT "
    "NULL, page text COLLATE \"C\" NOT NULL, PRIMARY KEY (cluster, id))";
inline constexpr const char* has_pages =
    "SELECT count(*) = 4 FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS needed "
    "WHERE has_table_privilege(to_regclass('cluster_pages'), needed)";
inline constexpr const char* add_page =
    "INSERT INTO cluster_pages VALUES ($1::text, $2::text, $3::text) "
    "ON CONFLICT (cluster, id) DO UPDATE SET page = excluded.page";
inline constexpr const char* drop_pages =
    "DELETE FROM cluster_pages p WHERE cluster = $1::text AND NOT EXISTS (SELECT "
    "FROM cluster_members m WHERE m.cluster = $1::text AND m.id = p.id)";
inline constexpr const char* read_pages =
    "SELECT id, page FROM cluster_pages WHERE cluster = $1::text";

inline constexpr const char* add_cluster =
    "INSERT INTO clusters VALUES ($1::text, $2::bigint, 1, 1) ON CONFLICT DO NOTHING";
inline constexpr const char* add_shards =
    "INSERT INTO cluster_shards SELECT $1::text, n, '', 0, 0 "
    "FROM generate_series(0, $2::bigint - 1) AS n ON CONFLICT DO NOTHING";

// Of a renewal that finds nothing to change. A row of this member is there: its shards were not
// freed. Another renewal that is about to free them has the row locked, and deletes it.
inline constexpr const char* renew =
    "WITH renewed AS (UPDATE cluster_members "
    "SET until = clock_timestamp() + $4::bigint * interval '1 millisecond', round = $3::bigint "
    "WHERE cluster = $1::text AND id = $2::text AND round <= $3::bigint RETURNING 1) "
    "SELECT (SELECT count(*) FROM renewed), c.version, (SELECT "
    "(extract(epoch FROM min(m.until) - clock_timestamp()) * 1000)::bigint FROM cluster_members m "
    "WHERE m.cluster = $1::text AND m.id <> $2::text) FROM clusters c WHERE c.cluster = $1::text";

inline constexpr const char* set_limits =
    "SELECT set_config(name, $1::text, true) FROM unnest(ARRAY['statement_timeout', "
    "'lock_timeout', 'idle_in_transaction_session_timeout']) AS name";
inline constexpr const char* lock_cluster =
    "SELECT version FROM clusters WHERE cluster = $1::text FOR UPDATE";
inline constexpr const char* drop_members =
    "DELETE FROM cluster_members WHERE cluster = $1::text AND id <> $2::text "
    "AND until < clock_timestamp()";
inline constexpr const char* leave =
    "DELETE FROM cluster_members WHERE cluster = $1::text AND id = $2::text "
    "AND round <= $3::bigint";
// No row: a later renewal was here first.
inline constexpr const char* join =
    "INSERT INTO cluster_members AS m VALUES ($1::text, $2::text, $5::text, $3::bigint, "
    "clock_timestamp() + $4::bigint * interval '1 millisecond', $6::boolean) "
    "ON CONFLICT (cluster, id) DO UPDATE SET until = excluded.until, round = excluded.round, "
    "leaving = excluded.leaving "
    "WHERE m.round <= excluded.round RETURNING xmax = 0";

// In the order of their numbers: transactions that check owners lock them in the same order.
inline constexpr const char* free_shards =
    "WITH freed AS (SELECT shard FROM cluster_shards s WHERE cluster = $1::text AND owner <> '' "
    "AND (CASE WHEN owner = $2::text THEN NOT EXISTS (SELECT "
    "FROM unnest($4::bigint[], $5::bigint[]) AS kept(shard, fence) "
    "WHERE kept.shard = s.shard AND kept.fence = s.fence) ELSE NOT EXISTS (SELECT "
    "FROM cluster_members m WHERE m.cluster = $1::text AND m.id = s.owner) END) "
    "ORDER BY shard FOR UPDATE) UPDATE cluster_shards AS s SET owner = '', fence = s.fence + 1, "
    "changed = $3::bigint FROM freed WHERE s.cluster = $1::text AND s.shard = freed.shard";
inline constexpr const char* take_shards =
    "WITH free AS (SELECT shard FROM cluster_shards WHERE cluster = $1::text AND owner = '' "
    "ORDER BY shard LIMIT $4::bigint FOR UPDATE) UPDATE cluster_shards AS s "
    "SET owner = $2::text, fence = s.fence + 1, changed = $3::bigint FROM free "
    "WHERE s.cluster = $1::text AND s.shard = free.shard";
inline constexpr const char* set_version =
    "UPDATE clusters SET version = $2::bigint, "
    "members_changed = CASE WHEN $3::boolean THEN $2::bigint ELSE members_changed END "
    "WHERE cluster = $1::text AND ($3::boolean OR EXISTS (SELECT FROM cluster_shards "
    "WHERE cluster = $1::text AND changed = $2::bigint))";

// All that has changed since $2, as of one moment; kinds of rows as in row_kind. With $4 the shards
// of the member $3 as well.
inline constexpr const char* read_changes =
    "SELECT 0::bigint, version, 0::bigint, (members_changed > $2::bigint)::text, '' FROM clusters "
    "WHERE cluster = $1::text UNION ALL "
    "SELECT 1, 0, m.leaving::integer, m.id, m.name FROM cluster_members m JOIN clusters c USING "
    "(cluster) "
    "WHERE cluster = $1::text AND c.members_changed > $2::bigint UNION ALL "
    "SELECT 2, shard, fence, owner, '' FROM cluster_shards "
    "WHERE cluster = $1::text AND changed > $2::bigint UNION ALL "
    "SELECT 3, shard, fence, '', '' FROM cluster_shards "
    "WHERE cluster = $1::text AND owner = $3::text AND $4::boolean UNION ALL "
    "SELECT 4, (extract(epoch FROM min(until) - clock_timestamp()) * 1000)::bigint, 0, '', '' "
    "FROM cluster_members WHERE cluster = $1::text AND id <> $3::text HAVING count(*) > 0 "
    "ORDER BY 1, 2, 4";
enum row_kind : std::int64_t { cluster_row, member_of, changed_shard, own_shard, next_end };

}  // namespace troupe::cluster::sql
