#include "troupe/durable_postgres/postgres_storage.hpp"

#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "durable/storage/packed_id.hpp"
#include "durable_postgres/array_text.hpp"
#include "durable_postgres/batch_writer.hpp"
#include "durable_postgres/in_postgres.hpp"
#include "durable_postgres/tables.hpp"
#include "troupe/database/error.hpp"
#include "troupe/durable/error.hpp"
#include "troupe/postgres/connection.hpp"
#include "troupe/task/when.hpp"

namespace troupe::durable {
namespace {

using postgres::transaction;

// The bytes of "troupe": stores that are opened at the same time make their tables one after the
// other.
constexpr std::int64_t opening_lock = 0x74726f757065;
// An index of PostgreSQL takes no row of more than 2,704 bytes.
constexpr std::size_t name_bytes_max = 2'000;
// The server ends a transaction whose process has disappeared; until then it keeps the row
// of the owner. See the header.
constexpr const char* owner_silence_max_ms = "10000";

bytes as_bytes(const packed_id& id) { return {id.begin(), id.end()}; }

void check_owner(std::int64_t owner, std::int64_t mine) {
  if (owner != mine)
    throw store_taken(
        "troupe: durable: another process has opened the store in the PostgreSQL database since; "
        "this one can store nothing any more");
}

// Keeps the row of the owner until the transaction ends. A process that has lost the store
// therefore commits either before the new owner reads the tables, or not at all.
task<> keep_owner(transaction& within, std::int64_t mine) {
  auto asks = within.query_one<std::tuple<std::int64_t, std::string>>(
      "SELECT value, set_config('idle_in_transaction_session_timeout', $1::text, true) "
      "FROM durable_meta WHERE name = 'owner' FOR UPDATE",
      owner_silence_max_ms);
  const auto found = co_await std::move(asks);
  if (!found) refuse_missing_row();
  check_owner(std::get<0>(*found), mine);
}

task<> run(task<postgres::changes> statement) { co_await std::move(statement); }

task<opened_storage> open_tables(transaction& within, std::int64_t owner) {
  auto makes = make_tables(within);
  co_await std::move(makes);
  auto reads_version = read_meta(within, "version");
  const std::int64_t version = co_await std::move(reads_version);
  if (version == cluster_tables_version)
    throw schema_error(
        "troupe: durable: the tables of the PostgreSQL database belong to a cluster; a node of the "
        "cluster can open them, and a store without a cluster cannot");
  if (version > tables_version)
    throw schema_error("troupe: durable: the tables of the PostgreSQL database have version " +
                       std::to_string(version) + ", and this program reads version " +
                       std::to_string(tables_version) + "; use the newer program");
  auto takes =
      within.execute("UPDATE durable_meta SET value = $1::bigint WHERE name = 'owner'", owner);
  co_await std::move(takes);
  opened_storage found;
  auto reads_batch = read_meta(within, "last_batch");
  found.last_batch = as_number(co_await std::move(reads_batch));
  auto reads_number = within.query_one<std::int64_t>(
      "SELECT greatest((SELECT max(number) FROM durable_inbox), "
      "(SELECT value FROM durable_meta WHERE name = 'last_number'))");
  found.last_order = as_number((co_await std::move(reads_number)).value_or(0));
  auto reads_classes = read_classes(within);
  found.classes = co_await std::move(reads_classes);
  co_return found;
}

task<> write(transaction& within, std::shared_ptr<const batch> all, std::int64_t owner) {
  std::vector<task<>> statements;
  statements.push_back(keep_owner(within, owner));
  for (task<>& statement : batch_writer(within).statements_of(*all))
    statements.push_back(std::move(statement));
  all.reset();
  auto runs = when_all(std::move(statements));
  co_await std::move(runs);
}

}  // namespace

void refuse_missing_row() {
  throw database::error(database::failure::corrupted, 0,
                        "troupe: durable: a row is missing in the table durable_meta of the "
                        "PostgreSQL database; restore the tables from a backup");
}

task<> make_tables(transaction& within) {
  // Each statement sees the earlier commits of others, whatever the server's settings are.
  auto sets = within.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
  co_await std::move(sets);
  auto locks = within.execute("SELECT pg_advisory_xact_lock($1::bigint)", opening_lock);
  co_await std::move(locks);
  auto looks = within.query_one<std::tuple<bool, std::string, bool>>(
      "SELECT to_regclass('durable_meta') IS NOT NULL, current_setting('server_encoding'), "
      "to_regclass('durable_calls') IS NOT NULL");
  const auto found = co_await std::move(looks);
  if (!found) refuse_missing_row();
  if (std::get<1>(*found) != "UTF8")
    throw usage_error("troupe: durable: the encoding of the PostgreSQL database is " +
                      std::get<1>(*found) + "; make one with ENCODING 'UTF8'");
  if (!std::get<0>(*found)) {
    auto makes = within.run_script(tables);
    co_await std::move(makes);
  }
  if (std::get<2>(*found)) co_return;
  auto adds = within.run_script(calls_table);
  co_await std::move(adds);
}

task<std::int64_t> read_meta(transaction& within, const char* name) {
  auto asks =
      within.query_one<std::int64_t>("SELECT value FROM durable_meta WHERE name = $1", name);
  const auto found = co_await std::move(asks);
  if (!found) refuse_missing_row();
  co_return *found;
}

task<std::vector<class_shape>> read_classes(transaction& within) {
  auto asks = within.query<std::tuple<std::string, std::uint32_t, std::int64_t, std::string>>(
      "SELECT kind, \"schema\", fingerprint, shape FROM durable_classes");
  const auto rows = co_await std::move(asks);
  std::vector<class_shape> found;
  for (const auto& [kind, schema, fingerprint, shape] : rows)
    found.push_back({text_of_stored(kind), schema, as_number(fingerprint), text_of_stored(shape)});
  co_return found;
}

stored_message message_of(message_row row) {
  stored_message message;
  message.order = as_number(std::get<0>(row));
  message.id = unpacked(std::get<1>(row));
  message.named = std::get<2>(row) != 0;
  message.from = static_cast<origin>(std::get<3>(row));
  message.to = {text_of_stored(std::get<4>(row)), text_of_stored(std::get<5>(row))};
  message.asker = unpacked(std::get<6>(row));
  message.method = text_of_stored(std::get<7>(row));
  message.signature = as_number(std::get<8>(row));
  message.arguments = std::move(std::get<9>(row));
  message.failures = std::get<10>(row);
  message.shard = std::get<11>(row);
  return message;
}
stored_reminder reminder_of(reminder_row row) {
  stored_reminder reminder;
  reminder.to = {text_of_stored(std::get<0>(row)), text_of_stored(std::get<1>(row))};
  reminder.name = text_of_stored(std::get<2>(row));
  reminder.due = decltype(reminder.due)(std::chrono::milliseconds(std::get<3>(row)));
  reminder.rule = text_of_stored(std::get<4>(row));
  reminder.method = text_of_stored(std::get<5>(row));
  reminder.signature = as_number(std::get<6>(row));
  reminder.arguments = std::move(std::get<7>(row));
  reminder.shard = std::get<8>(row);
  return reminder;
}

task<opened_storage> in_postgres::open() {
  owner_ = new_owner();
  const auto body = [owner = owner_](transaction& within) { return open_tables(within, owner); };
  return writes_.in_transaction(body);
}

task<> in_postgres::commit(std::shared_ptr<const batch> all) {
  const auto body = [all = std::move(all), owner = owner_](transaction& within) {
    return write(within, all, owner);
  };
  return writes_.in_transaction(body);
}

task<> in_postgres::keep_classes(std::vector<class_shape> added) {
  array_text kind, schema, fingerprint, shape;
  for (const class_shape& shape_added : added) {
    kind.add_text(shape_added.kind);
    schema.add(shape_added.schema);
    fingerprint.add(as_integer(shape_added.fingerprint));
    shape.add_text(shape_added.shape);
  }
  return run(writes_.execute(
      "INSERT INTO durable_classes SELECT * FROM unnest($1::text[], $2::integer[], $3::bigint[], "
      "$4::text[]) ORDER BY 1, 2 ON CONFLICT (kind, \"schema\") DO UPDATE SET "
      "fingerprint = excluded.fingerprint, shape = excluded.shape",
      kind.take(), schema.take(), fingerprint.take(), shape.take()));
}

void in_postgres::check_name(std::string_view kind, std::string_view key) const {
  if (4 * (kind.size() + key.size()) <= name_bytes_max) return;  // however it is stored
  const std::size_t bytes = stored_text(kind).size() + stored_text(key).size();
  if (bytes > name_bytes_max)
    throw usage_error("troupe: durable: class and key of an actor have " + std::to_string(bytes) +
                      " bytes together, and PostgreSQL keeps them up to " +
                      std::to_string(name_bytes_max) + "; choose shorter keys");
}

task<std::optional<stored_state>> in_postgres::load(actor_name actor) {
  const std::string kind = stored_text(actor.kind), key = stored_text(actor.key);
  // The state's own row has the number 0, and comes before the events.
  auto asks = reading(
      reads_.query<std::tuple<std::int64_t, std::uint32_t, std::int64_t, std::int64_t, bytes>>(
          "SELECT 0::bigint, \"schema\", fingerprint, number, value FROM durable_state "
          "WHERE kind = $1::text AND key = $2::text UNION ALL "
          "SELECT number, 0, 0, 0, value FROM durable_events "
          "WHERE kind = $1::text AND key = $2::text AND number > coalesce("
          "(SELECT number FROM durable_state WHERE kind = $1::text AND key = $2::text), 0) "
          "ORDER BY 1",
          kind, key));
  auto rows = co_await std::move(asks);
  std::optional<stored_state> found;
  for (auto& [event, schema, fingerprint, number, value] : rows) {
    if (!found) found.emplace();
    if (event == 0) {
      found->schema = schema;
      found->fingerprint = as_number(fingerprint);
      found->number = as_number(number);
      found->value = std::move(value);
    } else {
      found->events.push_back(std::move(value));
    }
  }
  co_return found;
}

// As in_sqlite::keys(). A page of stored texts, the smallest first.
task<std::vector<std::string>> in_postgres::stored_keys(std::string kind, std::string from,
                                                        bool is_behind, std::size_t most) {
  const std::string where = std::string(" WHERE kind = $1::text AND key ") +
                            (is_behind ? ">" : ">=") + " $2::text ORDER BY key LIMIT ";
  const std::string text =
      "WITH RECURSIVE logs(key, count) AS ((SELECT key, 1::bigint FROM durable_events" + where +
      "1) UNION ALL SELECT (SELECT e.key FROM durable_events AS e WHERE e.kind = $1::text AND "
      "e.key > logs.key ORDER BY e.key LIMIT 1), logs.count + 1 FROM logs WHERE logs.key IS NOT "
      "NULL AND logs.count < $3::bigint) SELECT key FROM (SELECT key FROM durable_state" +
      where +
      "$3::bigint) AS states UNION SELECT key FROM logs WHERE key IS NOT NULL "
      "ORDER BY key LIMIT $3::bigint";
  return reading(reads_.query<std::string>(text, kind, from, as_integer(most)));
}

task<std::vector<std::string>> in_postgres::keys(std::string kind, key_range range) {
  const std::string after = stored_text(range.after.value_or(""));
  std::vector<std::string> found;
  for (std::string& place : places_of_prefix(range.prefix)) {
    if (found.size() == range.most) break;
    const std::string last = found.empty() ? after : stored_text(found.back());
    const bool is_behind = (range.after || !found.empty()) && last >= place;
    const std::size_t most = range.most - found.size();
    auto asks = stored_keys(stored_text(kind), is_behind ? last : place, is_behind, most);
    const std::vector<std::string> page = co_await std::move(asks);
    for (const std::string& stored : page) {
      std::string key = text_of_stored(stored);
      if (!key.starts_with(range.prefix)) break;
      found.push_back(std::move(key));
    }
  }
  co_return found;
}

task<std::vector<stored_message>> in_postgres::inbox(std::uint64_t after, std::size_t most) {
  auto asks = reading(reads_.query<message_row>(
      "SELECT number, id, named, origin, kind, key, asker, method, signature, arguments, failures, "
      "0 FROM durable_inbox WHERE number > $1::bigint ORDER BY number LIMIT $2::bigint",
      as_integer(after), as_integer(most)));
  auto rows = co_await std::move(asks);
  std::vector<stored_message> found;
  for (message_row& row : rows) found.push_back(message_of(std::move(row)));
  co_return found;
}

task<found_message> in_postgres::find(message_id id) {
  using row =
      std::tuple<bool, std::optional<bytes>, std::optional<std::int64_t>, std::optional<int>,
                 std::optional<std::string>, std::optional<bytes>, std::optional<std::string>,
                 std::optional<std::int64_t>, std::optional<std::string>, std::optional<bytes>>;
  auto asks = reading(reads_.query_one<row>(
      "SELECT i.method IS NOT NULL, a.asker, a.at, a.failed, a.error_type, a.value, "
      "c.method, c.arguments, i.method, i.arguments FROM (SELECT 1) AS one "
      "LEFT JOIN durable_answers AS a ON a.id = $1::bytea "
      "LEFT JOIN durable_calls AS c ON c.id = a.id "
      "LEFT JOIN LATERAL (SELECT method, arguments FROM durable_inbox "
      "WHERE id = $1::bytea AND named = 1 LIMIT 1) AS i ON true",
      as_bytes(packed(id))));
  auto got = co_await std::move(asks);
  found_message found;
  if (!got) co_return found;
  auto& [waits, asker, at, failed, error_type, value, method, arguments, waiting_method,
         waiting_arguments] = *got;
  found.in_inbox = waits;
  if (method && arguments) {
    found.call = {text_of_stored(*method), as_number(*arguments)};
  } else if (waiting_method && waiting_arguments && !value) {
    stored_message waiting;
    waiting.method = text_of_stored(*waiting_method);
    waiting.arguments = std::move(*waiting_arguments);
    found.call = call_identity::of(waiting);
  }
  if (asker && at && failed && error_type && value) {
    stored_answer answer{id,
                         unpacked(*asker),
                         std::chrono::sys_seconds(std::chrono::seconds(*at)),
                         *failed != 0,
                         text_of_stored(*error_type),
                         std::move(*value),
                         found.call};
    found.answer = std::move(answer);
  }
  co_return found;
}

task<std::vector<stored_reminder>> in_postgres::reminders(std::size_t most) {
  auto asks = reading(
      reads_.query<reminder_row>("SELECT kind, key, name, due, rule, method, signature, arguments, "
                                 "0 FROM durable_reminders ORDER BY due LIMIT $1::bigint",
                                 as_integer(most)));
  auto rows = co_await std::move(asks);
  std::vector<stored_reminder> found;
  for (reminder_row& row : rows) found.push_back(reminder_of(std::move(row)));
  co_return found;
}

// A server that has lost our connection may still have the COMMIT before it: its transaction has
// the rows locked, so that this waits until it has ended. In the order in which a commit locks
// them.
task<std::uint64_t> in_postgres::last_batch() {
  auto asks = reading(writes_.query<std::tuple<std::string, std::int64_t>>(
      "SELECT name, value FROM durable_meta WHERE name IN ('owner', 'last_batch') "
      "ORDER BY name DESC FOR UPDATE"));
  const auto rows = co_await std::move(asks);
  if (rows.size() != 2) refuse_missing_row();
  check_owner(std::get<1>(rows[0]), owner_);
  co_return as_number(std::get<1>(rows[1]));
}

std::unique_ptr<storage> postgres_storage(runtime& on, std::string target,
                                          const postgres::options& chosen) {
  return std::make_unique<in_postgres>(on, target, chosen);
}

}  // namespace troupe::durable
