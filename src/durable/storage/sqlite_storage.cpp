#include "troupe/durable/sqlite_storage.hpp"

#include <algorithm>
#include <utility>

#include "durable/storage/in_sqlite.hpp"
#include "durable/storage/packed_id.hpp"
#include "troupe/durable/error.hpp"
#include "troupe/sqlite/connection.hpp"

namespace troupe::durable {
namespace {

using sqlite::session;
using sqlite::session_transaction;
using sqlite::statement;

bytes copy_of(std::span<const std::byte> from) { return {from.begin(), from.end()}; }

}  // namespace

std::int64_t meta(session& session, const char* name) {
  statement reads(session, "SELECT value FROM durable_meta WHERE name = ?");
  reads.bind_text(1, name);
  return reads.step() ? reads.integer(0) : 0;
}
void set_meta(session& session, const char* name, std::int64_t value) {
  statement writes(session, "UPDATE durable_meta SET value = ? WHERE name = ?");
  writes.bind_integer(1, value);
  writes.bind_text(2, name);
  writes.run();
}

namespace {

void bind(statement& statement, const stored_message& message, const packed_id& id,
          const packed_id& asker) {
  statement.bind_integer(1, as_integer(message.order));
  statement.bind_bytes(2, id);
  statement.bind_integer(3, message.named ? 1 : 0);
  statement.bind_integer(4, static_cast<std::int64_t>(message.from));
  statement.bind_text(5, message.to.kind);
  statement.bind_text(6, message.to.key);
  statement.bind_bytes(7, asker);
  statement.bind_text(8, message.method);
  statement.bind_integer(9, as_integer(message.signature));
  statement.bind_bytes(10, message.arguments);
  statement.bind_integer(11, message.failures);
}
}  // namespace

stored_message message_of(const statement& row) {
  stored_message message;
  message.order = as_number(row.integer(0));
  message.id = unpacked(row.bytes(1));
  message.named = row.integer(2) != 0;
  message.from = static_cast<origin>(row.integer(3));
  message.to = {std::string(row.text(4)), std::string(row.text(5))};
  message.asker = unpacked(row.bytes(6));
  message.method = std::string(row.text(7));
  message.signature = as_number(row.integer(8));
  message.arguments = copy_of(row.bytes(9));
  message.failures = static_cast<std::uint32_t>(row.integer(10));
  if (row.columns() > 11) message.shard = static_cast<std::uint32_t>(row.integer(11));
  return message;
}

namespace {

void write_inbox(session& session, const batch& all, rows_for user) {
  if (!all.arrived.empty()) {
    const bool has_shards = user == rows_for::cluster;
    statement adds(session, has_shards
                                ? "INSERT INTO durable_inbox VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"
                                : "INSERT INTO durable_inbox VALUES (?,?,?,?,?,?,?,?,?,?,?)");
    for (const auto& message : all.arrived) {
      const packed_id id = packed(message->id), asker = packed(message->asker);
      bind(adds, *message, id, asker);
      if (has_shards) adds.bind_integer(12, message->shard);
      adds.run();
    }
  }
  if (!all.failed.empty()) {
    statement counts(session, "UPDATE durable_inbox SET failures = ? WHERE number = ?");
    for (const batch::failed_message& failed : all.failed) {
      counts.bind_integer(1, failed.failures);
      counts.bind_integer(2, as_integer(failed.order));
      counts.run();
    }
  }
  if (!all.handled.empty()) {
    statement removes(session, "DELETE FROM durable_inbox WHERE number = ?");
    for (const std::uint64_t order : all.handled) {
      removes.bind_integer(1, as_integer(order));
      removes.run();
    }
  }
}

void write_states(session& session, const batch& all) {
  if (!all.states.empty()) {
    statement writes(session, "INSERT OR REPLACE INTO durable_state VALUES (?,?,?,?,?,?)");
    for (const batch::changed_state& changed : all.states) {
      writes.bind_text(1, changed.actor.kind);
      writes.bind_text(2, changed.actor.key);
      writes.bind_integer(3, changed.state.schema);
      writes.bind_integer(4, as_integer(changed.state.fingerprint));
      writes.bind_integer(5, as_integer(changed.state.number));
      writes.bind_bytes(6, changed.state.value);
      writes.run();
    }
  }
  if (!all.events.empty()) {
    statement adds(session, "INSERT INTO durable_events VALUES (?,?,?,?)");
    for (const batch::appended_event& event : all.events) {
      adds.bind_text(1, event.actor.kind);
      adds.bind_text(2, event.actor.key);
      adds.bind_integer(3, as_integer(event.number));
      adds.bind_bytes(4, event.value);
      adds.run();
    }
  }
}

// In a cluster a message that is still in the inbox may be sent to another node once more, or ask
// once more.
void forget_answers(session& session, const batch& all, rows_for user) {
  if (all.forget_before.time_since_epoch().count() == 0) return;
  statement removes(session,
                    user == rows_for::cluster
                        ? "DELETE FROM durable_answers WHERE at < ? "
                          "AND NOT EXISTS (SELECT 1 FROM durable_inbox AS i WHERE "
                          "i.id = durable_answers.id OR i.id = durable_answers.asker)"
                        : "DELETE FROM durable_answers WHERE at < ? AND asker = zeroblob(16)");
  removes.bind_integer(1, all.forget_before.time_since_epoch().count());
  removes.run();
  statement removes_calls(session,
                          "DELETE FROM durable_calls WHERE at < ? AND NOT EXISTS (SELECT 1 "
                          "FROM durable_answers AS a WHERE a.id = durable_calls.id)");
  removes_calls.bind_integer(1, all.forget_before.time_since_epoch().count());
  removes_calls.run();
}

void write_calls(session& session, const batch& all) {
  statement adds(session, "INSERT OR REPLACE INTO durable_calls VALUES (?,?,?,?)");
  for (const stored_answer& answer : all.answers) {
    if (answer.call.method.empty()) continue;
    const packed_id id = packed(answer.id);
    adds.bind_bytes(1, id);
    adds.bind_text(2, answer.call.method);
    adds.bind_integer(3, as_integer(answer.call.arguments));
    adds.bind_integer(4, answer.at.time_since_epoch().count());
    adds.run();
  }
}

void write_answers(session& session, const batch& all) {
  if (!all.answers.empty()) {
    statement adds(session, "INSERT OR REPLACE INTO durable_answers VALUES (?,?,?,?,?,?)");
    for (const stored_answer& answer : all.answers) {
      const packed_id id = packed(answer.id), asker = packed(answer.asker);
      adds.bind_bytes(1, id);
      adds.bind_bytes(2, asker);
      adds.bind_integer(3, answer.at.time_since_epoch().count());
      adds.bind_integer(4, answer.failed ? 1 : 0);
      adds.bind_text(5, answer.error_type);
      adds.bind_bytes(6, answer.value);
      adds.run();
    }
    write_calls(session, all);
  }
  if (!all.ended.empty()) {
    statement removes(session,
                      "DELETE FROM durable_answers WHERE asker = ? AND asker <> zeroblob(16)");
    for (const message_id& id : all.ended) {
      const packed_id asker = packed(id);
      removes.bind_bytes(1, asker);
      removes.run();
    }
  }
}

void write_dead(session& session, const batch& all) {
  if (all.dead.empty()) return;
  statement adds(session,
                 "INSERT OR REPLACE INTO durable_dead VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  for (const dead_letter& letter : all.dead) {
    const packed_id id = packed(letter.message.id), asker = packed(letter.message.asker);
    bind(adds, letter.message, id, asker);
    adds.bind_text(12, letter.error_type);
    adds.bind_text(13, letter.error);
    adds.bind_integer(14, letter.at.time_since_epoch().count());
    adds.run();
  }
}

void write_reminders(session& session, const batch& all, rows_for user) {
  for (const stored_reminder& reminder : all.reminders) {
    const bool has_shards = user == rows_for::cluster;
    statement writes(
        session, has_shards ? "INSERT OR REPLACE INTO durable_reminders VALUES (?,?,?,?,?,?,?,?,?)"
                            : "INSERT OR REPLACE INTO durable_reminders VALUES (?,?,?,?,?,?,?,?)");
    if (has_shards) writes.bind_integer(9, reminder.shard);
    writes.bind_text(1, reminder.to.kind);
    writes.bind_text(2, reminder.to.key);
    writes.bind_text(3, reminder.name);
    writes.bind_integer(4, reminder.due.time_since_epoch().count());
    writes.bind_text(5, reminder.rule);
    writes.bind_text(6, reminder.method);
    writes.bind_integer(7, as_integer(reminder.signature));
    writes.bind_bytes(8, reminder.arguments);
    writes.run();
  }
  for (const batch::reminder_name& removed : all.removed_reminders) {
    statement removes(session,
                      "DELETE FROM durable_reminders WHERE kind = ? AND key = ? AND name = ?");
    removes.bind_text(1, removed.actor.kind);
    removes.bind_text(2, removed.actor.key);
    removes.bind_text(3, removed.name);
    removes.run();
  }
  for (const batch::fired_reminder& fired : all.fired_reminders) {
    statement moves(session, fired.next
                                 ? "UPDATE durable_reminders SET due = $5 WHERE kind = $1 AND "
                                   "key = $2 AND name = $3 AND due = $4"
                                 : "DELETE FROM durable_reminders WHERE kind = $1 AND key = $2 "
                                   "AND name = $3 AND due = $4");
    moves.bind_text(1, fired.actor.kind);
    moves.bind_text(2, fired.actor.key);
    moves.bind_text(3, fired.name);
    moves.bind_integer(4, fired.due.time_since_epoch().count());
    if (fired.next) moves.bind_integer(5, fired.next->time_since_epoch().count());
    moves.run();
  }
}

}  // namespace

void write_rows(session& session, const batch& all, rows_for user) {
  write_inbox(session, all, user);
  write_states(session, all);
  write_answers(session, all);
  forget_answers(session, all, user);
  write_dead(session, all);
  write_reminders(session, all, user);
}

namespace {

void check_owner(session& session, std::int64_t owner, const std::string& path) {
  if (meta(session, "owner") != owner)
    throw store_taken("troupe: durable: another process has opened " + path +
                      " since; this one can store nothing any more");
}

void write(session& session, const batch& all, std::int64_t owner, const std::string& path) {
  session_transaction within(session);
  check_owner(session, owner, path);
  write_rows(session, all, rows_for::one_process);
  set_meta(session, "last_batch", as_integer(all.number));
  // Numbers of messages are not used again, even when the inbox is empty.
  if (!all.arrived.empty()) set_meta(session, "last_number", as_integer(all.arrived.back()->order));
  within.commit();
}

}  // namespace

std::vector<class_shape> read_classes(session& session) {
  std::vector<class_shape> found;
  statement reads(session, "SELECT kind, \"schema\", fingerprint, shape FROM durable_classes");
  while (reads.step())
    found.push_back({std::string(reads.text(0)), static_cast<std::uint32_t>(reads.integer(1)),
                     as_number(reads.integer(2)), std::string(reads.text(3))});
  return found;
}

namespace {

opened_storage open_tables(session& session, std::int64_t owner, const std::string& path) {
  session_transaction within(session);
  session.run_script(sqlite_tables);
  const std::int64_t version = meta(session, "version");
  if (version == cluster_tables_version)
    throw schema_error("troupe: durable: the tables of " + path +
                       " belong to a cluster; open them as one of its nodes");
  if (version > tables_version)
    throw schema_error("troupe: durable: the tables of " + path + " have version " +
                       std::to_string(version) + ", and this program reads version " +
                       std::to_string(tables_version) + "; use the newer program");
  set_meta(session, "owner", owner);
  opened_storage found;
  found.last_batch = as_number(meta(session, "last_batch"));
  found.last_order = as_number(meta(session, "last_number"));
  {
    statement last(session, "SELECT coalesce(max(number), 0) FROM durable_inbox");
    if (last.step()) found.last_order = std::max(found.last_order, as_number(last.integer(0)));
  }
  found.classes = read_classes(session);
  within.commit();
  return found;
}

void write_classes(session& session, const std::vector<class_shape>& added) {
  session_transaction within(session);
  statement adds(session, "INSERT OR REPLACE INTO durable_classes VALUES (?,?,?,?)");
  for (const class_shape& row : added) {
    adds.bind_text(1, row.kind);
    adds.bind_integer(2, row.schema);
    adds.bind_integer(3, as_integer(row.fingerprint));
    adds.bind_text(4, row.shape);
    adds.run();
  }
  within.commit();
}

std::optional<stored_state> read_state(session& session, const actor_name& actor) {
  std::optional<stored_state> found;
  {
    statement reads(session,
                    "SELECT \"schema\", fingerprint, number, value FROM durable_state "
                    "WHERE kind = ? AND key = ?");
    reads.bind_text(1, actor.kind);
    reads.bind_text(2, actor.key);
    if (reads.step())
      found = {static_cast<std::uint32_t>(reads.integer(0)),
               as_number(reads.integer(1)),
               copy_of(reads.bytes(3)),
               as_number(reads.integer(2)),
               {}};
  }
  statement reads(session,
                  "SELECT value FROM durable_events WHERE kind = ? AND key = ? AND number > ? "
                  "ORDER BY number");
  reads.bind_text(1, actor.kind);
  reads.bind_text(2, actor.key);
  reads.bind_integer(3, found ? as_integer(found->number) : 0);
  while (reads.step()) {
    if (!found) found.emplace();
    found->events.push_back(copy_of(reads.bytes(0)));
  }
  return found;
}

std::vector<stored_message> read_inbox(session& session, std::uint64_t after, std::size_t most) {
  std::vector<stored_message> found;
  statement reads(session, "SELECT * FROM durable_inbox WHERE number > ? ORDER BY number LIMIT ?");
  reads.bind_integer(1, as_integer(after));
  reads.bind_integer(2, static_cast<std::int64_t>(most));
  while (reads.step()) found.push_back(message_of(reads));
  return found;
}

found_message read_message(session& session, const message_id& id) {
  const packed_id packed_one = packed(id);
  found_message found;
  {
    statement reads(session,
                    "SELECT a.asker, a.at, a.failed, a.error_type, a.value, "
                    "coalesce(c.method, ''), coalesce(c.arguments, 0) FROM durable_answers AS a "
                    "LEFT JOIN durable_calls AS c ON c.id = a.id WHERE a.id = ?");
    reads.bind_bytes(1, packed_one);
    if (reads.step()) {
      stored_answer answer{id,
                           unpacked(reads.bytes(0)),
                           std::chrono::sys_seconds(std::chrono::seconds(reads.integer(1))),
                           reads.integer(2) != 0,
                           std::string(reads.text(3)),
                           copy_of(reads.bytes(4)),
                           {std::string(reads.text(5)), as_number(reads.integer(6))}};
      found.call = answer.call;
      found.answer = std::move(answer);
    }
  }
  statement waits(session, "SELECT * FROM durable_inbox WHERE id = ? AND named = 1");
  waits.bind_bytes(1, packed_one);
  found.in_inbox = waits.step();
  if (found.in_inbox && !found.answer) found.call = call_identity::of(message_of(waits));
  return found;
}

}  // namespace

stored_reminder reminder_of(const statement& row) {
  stored_reminder reminder;
  reminder.to = {std::string(row.text(0)), std::string(row.text(1))};
  reminder.name = std::string(row.text(2));
  reminder.due = decltype(reminder.due)(std::chrono::milliseconds(row.integer(3)));
  reminder.rule = std::string(row.text(4));
  reminder.method = std::string(row.text(5));
  reminder.signature = as_number(row.integer(6));
  reminder.arguments = copy_of(row.bytes(7));
  if (row.columns() > 8) reminder.shard = static_cast<std::uint32_t>(row.integer(8));
  return reminder;
}

namespace {

std::vector<stored_reminder> read_reminders(session& session, std::size_t most) {
  std::vector<stored_reminder> found;
  statement reads(session, "SELECT * FROM durable_reminders ORDER BY due LIMIT ?");
  reads.bind_integer(1, static_cast<std::int64_t>(most));
  while (reads.step()) found.push_back(reminder_of(reads));
  return found;
}

// A query for each kind of row, so that a page of a large class reads no more than a page. An actor
// may have many events: from each key the index leads to the next one.
std::vector<std::string> read_keys(session& session, const std::string& kind,
                                   const key_range& range) {
  const bool is_behind = range.after && *range.after >= range.prefix;
  const std::string where = std::string(" WHERE kind = ?1 AND key ") + (is_behind ? ">" : ">=") +
                            " ?2 ORDER BY key LIMIT ";
  const std::string text =
      "WITH RECURSIVE logs(key) AS (SELECT * FROM (SELECT key FROM durable_events" + where +
      "1) UNION ALL SELECT (SELECT e.key FROM durable_events AS e WHERE "
      "e.kind = ?1 AND e.key > logs.key ORDER BY e.key LIMIT 1) FROM logs "
      "WHERE logs.key IS NOT NULL LIMIT ?3) SELECT key FROM (SELECT key FROM durable_state" +
      where + "?3) UNION SELECT key FROM logs WHERE key IS NOT NULL ORDER BY key LIMIT ?3";
  std::vector<std::string> found;
  statement reads(session, text.c_str());
  reads.bind_text(1, kind);
  reads.bind_text(2, is_behind ? *range.after : range.prefix);
  reads.bind_integer(3, static_cast<std::int64_t>(range.most));
  while (reads.step() && reads.text(0).starts_with(range.prefix)) found.emplace_back(reads.text(0));
  return found;
}

}  // namespace

task<opened_storage> in_sqlite::open() {
  owner_ = as_integer(message_id::random().low >> 1);
  return on_thread([owner = owner_, path = path_](session& session) {
    return open_tables(session, owner, path);
  });
}
task<> in_sqlite::keep_classes(std::vector<class_shape> added) {
  return on_thread([added = std::move(added)](session& session) { write_classes(session, added); });
}
task<std::optional<stored_state>> in_sqlite::load(actor_name actor) {
  return on_thread(
      [actor = std::move(actor)](session& session) { return read_state(session, actor); });
}
task<std::vector<std::string>> in_sqlite::keys(std::string kind, key_range range) {
  return on_thread([kind = std::move(kind), range = std::move(range)](session& session) {
    return read_keys(session, kind, range);
  });
}
task<std::vector<stored_message>> in_sqlite::inbox(std::uint64_t after, std::size_t most) {
  return on_thread([after, most](session& session) { return read_inbox(session, after, most); });
}
task<found_message> in_sqlite::find(message_id id) {
  return on_thread([id](session& session) { return read_message(session, id); });
}
task<std::vector<stored_reminder>> in_sqlite::reminders(std::size_t most) {
  return on_thread([most](session& session) { return read_reminders(session, most); });
}
task<> in_sqlite::commit(std::shared_ptr<const batch> all) {
  return on_thread([all = std::move(all), owner = owner_, path = path_](session& session) {
    write(session, *all, owner, path);
  });
}
task<std::uint64_t> in_sqlite::last_batch() {
  return on_thread([owner = owner_, path = path_](session& session) {
    check_owner(session, owner, path);
    return as_number(meta(session, "last_batch"));
  });
}

std::unique_ptr<storage> sqlite_storage(runtime& on, std::string path, sqlite::options chosen) {
  return std::make_unique<in_sqlite>(on, std::move(path), chosen);
}

}  // namespace troupe::durable
