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

std::int64_t meta(session& in, const char* name) {
  statement reads(in, "SELECT value FROM durable_meta WHERE name = ?");
  reads.bind_text(1, name);
  return reads.step() ? reads.integer(0) : 0;
}
void set_meta(session& in, const char* name, std::int64_t value) {
  statement writes(in, "UPDATE durable_meta SET value = ? WHERE name = ?");
  writes.bind_integer(1, value);
  writes.bind_text(2, name);
  writes.run();
}

namespace {

void bind(statement& to, const stored_message& one, const packed_id& id, const packed_id& asker) {
  to.bind_integer(1, as_integer(one.order));
  to.bind_bytes(2, id);
  to.bind_integer(3, one.named ? 1 : 0);
  to.bind_integer(4, static_cast<std::int64_t>(one.from));
  to.bind_text(5, one.to.kind);
  to.bind_text(6, one.to.key);
  to.bind_bytes(7, asker);
  to.bind_text(8, one.method);
  to.bind_integer(9, as_integer(one.signature));
  to.bind_bytes(10, one.arguments);
  to.bind_integer(11, one.failures);
}
}  // namespace

stored_message message_of(const statement& row) {
  stored_message one;
  one.order = as_number(row.integer(0));
  one.id = unpacked(row.bytes(1));
  one.named = row.integer(2) != 0;
  one.from = static_cast<origin>(row.integer(3));
  one.to = {std::string(row.text(4)), std::string(row.text(5))};
  one.asker = unpacked(row.bytes(6));
  one.method = std::string(row.text(7));
  one.signature = as_number(row.integer(8));
  one.arguments = copy_of(row.bytes(9));
  one.failures = static_cast<std::uint32_t>(row.integer(10));
  if (row.columns() > 11) one.shard = static_cast<std::uint32_t>(row.integer(11));
  return one;
}

namespace {

void write_inbox(session& in, const batch& all, rows_for whom) {
  if (!all.arrived.empty()) {
    const bool has_shards = whom == rows_for::cluster;
    statement adds(in, has_shards ? "INSERT INTO durable_inbox VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"
                                  : "INSERT INTO durable_inbox VALUES (?,?,?,?,?,?,?,?,?,?,?)");
    for (const auto& one : all.arrived) {
      const packed_id id = packed(one->id), asker = packed(one->asker);
      bind(adds, *one, id, asker);
      if (has_shards) adds.bind_integer(12, one->shard);
      adds.run();
    }
  }
  if (!all.failed.empty()) {
    statement counts(in, "UPDATE durable_inbox SET failures = ? WHERE number = ?");
    for (const batch::failed_message& one : all.failed) {
      counts.bind_integer(1, one.failures);
      counts.bind_integer(2, as_integer(one.order));
      counts.run();
    }
  }
  if (!all.handled.empty()) {
    statement removes(in, "DELETE FROM durable_inbox WHERE number = ?");
    for (const std::uint64_t order : all.handled) {
      removes.bind_integer(1, as_integer(order));
      removes.run();
    }
  }
}

void write_states(session& in, const batch& all) {
  if (!all.states.empty()) {
    statement writes(in, "INSERT OR REPLACE INTO durable_state VALUES (?,?,?,?,?,?)");
    for (const batch::changed_state& one : all.states) {
      writes.bind_text(1, one.of.kind);
      writes.bind_text(2, one.of.key);
      writes.bind_integer(3, one.state.schema);
      writes.bind_integer(4, as_integer(one.state.fingerprint));
      writes.bind_integer(5, as_integer(one.state.number));
      writes.bind_bytes(6, one.state.value);
      writes.run();
    }
  }
  if (!all.events.empty()) {
    statement adds(in, "INSERT INTO durable_events VALUES (?,?,?,?)");
    for (const batch::appended_event& one : all.events) {
      adds.bind_text(1, one.of.kind);
      adds.bind_text(2, one.of.key);
      adds.bind_integer(3, as_integer(one.number));
      adds.bind_bytes(4, one.value);
      adds.run();
    }
  }
}

// In a cluster a message that is still in the inbox may be sent to another node once more, or ask
// once more.
void forget_answers(session& in, const batch& all, rows_for whom) {
  if (all.forget_before.time_since_epoch().count() == 0) return;
  statement removes(in, whom == rows_for::cluster
                            ? "DELETE FROM durable_answers WHERE at < ? "
                              "AND NOT EXISTS (SELECT 1 FROM durable_inbox AS i WHERE "
                              "i.id = durable_answers.id OR i.id = durable_answers.asker)"
                            : "DELETE FROM durable_answers WHERE at < ? AND asker = zeroblob(16)");
  removes.bind_integer(1, all.forget_before.time_since_epoch().count());
  removes.run();
  statement removes_calls(in,
                          "DELETE FROM durable_calls WHERE at < ? AND NOT EXISTS (SELECT 1 "
                          "FROM durable_answers AS a WHERE a.id = durable_calls.id)");
  removes_calls.bind_integer(1, all.forget_before.time_since_epoch().count());
  removes_calls.run();
}

void write_calls(session& in, const batch& all) {
  statement adds(in, "INSERT OR REPLACE INTO durable_calls VALUES (?,?,?,?)");
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

void write_answers(session& in, const batch& all) {
  if (!all.answers.empty()) {
    statement adds(in, "INSERT OR REPLACE INTO durable_answers VALUES (?,?,?,?,?,?)");
    for (const stored_answer& one : all.answers) {
      const packed_id id = packed(one.id), asker = packed(one.asker);
      adds.bind_bytes(1, id);
      adds.bind_bytes(2, asker);
      adds.bind_integer(3, one.at.time_since_epoch().count());
      adds.bind_integer(4, one.failed ? 1 : 0);
      adds.bind_text(5, one.error_type);
      adds.bind_bytes(6, one.value);
      adds.run();
    }
    write_calls(in, all);
  }
  if (!all.ended.empty()) {
    statement removes(in, "DELETE FROM durable_answers WHERE asker = ? AND asker <> zeroblob(16)");
    for (const message_id& one : all.ended) {
      const packed_id asker = packed(one);
      removes.bind_bytes(1, asker);
      removes.run();
    }
  }
}

void write_dead(session& in, const batch& all) {
  if (all.dead.empty()) return;
  statement adds(in, "INSERT OR REPLACE INTO durable_dead VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  for (const dead_letter& one : all.dead) {
    const packed_id id = packed(one.message.id), asker = packed(one.message.asker);
    bind(adds, one.message, id, asker);
    adds.bind_text(12, one.error_type);
    adds.bind_text(13, one.error);
    adds.bind_integer(14, one.at.time_since_epoch().count());
    adds.run();
  }
}

void write_reminders(session& in, const batch& all, rows_for whom) {
  for (const stored_reminder& one : all.reminders) {
    const bool has_shards = whom == rows_for::cluster;
    statement writes(in, has_shards
                             ? "INSERT OR REPLACE INTO durable_reminders VALUES (?,?,?,?,?,?,?,?,?)"
                             : "INSERT OR REPLACE INTO durable_reminders VALUES (?,?,?,?,?,?,?,?)");
    if (has_shards) writes.bind_integer(9, one.shard);
    writes.bind_text(1, one.to.kind);
    writes.bind_text(2, one.to.key);
    writes.bind_text(3, one.name);
    writes.bind_integer(4, one.due.time_since_epoch().count());
    writes.bind_text(5, one.rule);
    writes.bind_text(6, one.method);
    writes.bind_integer(7, as_integer(one.signature));
    writes.bind_bytes(8, one.arguments);
    writes.run();
  }
  for (const batch::reminder_name& one : all.removed_reminders) {
    statement removes(in, "DELETE FROM durable_reminders WHERE kind = ? AND key = ? AND name = ?");
    removes.bind_text(1, one.of.kind);
    removes.bind_text(2, one.of.key);
    removes.bind_text(3, one.name);
    removes.run();
  }
  for (const batch::fired_reminder& one : all.fired_reminders) {
    statement moves(in, one.next ? "UPDATE durable_reminders SET due = $5 WHERE kind = $1 AND "
                                   "key = $2 AND name = $3 AND due = $4"
                                 : "DELETE FROM durable_reminders WHERE kind = $1 AND key = $2 "
                                   "AND name = $3 AND due = $4");
    moves.bind_text(1, one.of.kind);
    moves.bind_text(2, one.of.key);
    moves.bind_text(3, one.name);
    moves.bind_integer(4, one.due.time_since_epoch().count());
    if (one.next) moves.bind_integer(5, one.next->time_since_epoch().count());
    moves.run();
  }
}

}  // namespace

void write_rows(session& in, const batch& all, rows_for whom) {
  write_inbox(in, all, whom);
  write_states(in, all);
  write_answers(in, all);
  forget_answers(in, all, whom);
  write_dead(in, all);
  write_reminders(in, all, whom);
}

namespace {

void check_owner(session& in, std::int64_t owner, const std::string& path) {
  if (meta(in, "owner") != owner)
    throw store_taken("troupe: durable: another process has opened " + path +
                      " since; this one can store nothing any more");
}

void write(session& in, const batch& all, std::int64_t owner, const std::string& path) {
  session_transaction within(in);
  check_owner(in, owner, path);
  write_rows(in, all, rows_for::one_process);
  set_meta(in, "last_batch", as_integer(all.number));
  // Numbers of messages are not used again, also when the inbox is empty.
  if (!all.arrived.empty()) set_meta(in, "last_number", as_integer(all.arrived.back()->order));
  within.commit();
}

}  // namespace

std::vector<class_shape> read_classes(session& in) {
  std::vector<class_shape> found;
  statement reads(in, "SELECT kind, \"schema\", fingerprint, shape FROM durable_classes");
  while (reads.step())
    found.push_back({std::string(reads.text(0)), static_cast<std::uint32_t>(reads.integer(1)),
                     as_number(reads.integer(2)), std::string(reads.text(3))});
  return found;
}

namespace {

opened_storage open_tables(session& in, std::int64_t owner, const std::string& path) {
  session_transaction within(in);
  in.run_script(sqlite_tables);
  const std::int64_t version = meta(in, "version");
  if (version == cluster_tables_version)
    throw schema_error("troupe: durable: the tables of " + path +
                       " belong to a cluster; open them as one of its nodes");
  if (version > tables_version)
    throw schema_error("troupe: durable: the tables of " + path + " have version " +
                       std::to_string(version) + ", and this program knows version " +
                       std::to_string(tables_version) + "; use the newer program");
  set_meta(in, "owner", owner);
  opened_storage found;
  found.last_batch = as_number(meta(in, "last_batch"));
  found.last_order = as_number(meta(in, "last_number"));
  {
    statement last(in, "SELECT coalesce(max(number), 0) FROM durable_inbox");
    if (last.step()) found.last_order = std::max(found.last_order, as_number(last.integer(0)));
  }
  found.classes = read_classes(in);
  within.commit();
  return found;
}

void write_classes(session& in, const std::vector<class_shape>& added) {
  session_transaction within(in);
  statement adds(in, "INSERT OR REPLACE INTO durable_classes VALUES (?,?,?,?)");
  for (const class_shape& one : added) {
    adds.bind_text(1, one.kind);
    adds.bind_integer(2, one.schema);
    adds.bind_integer(3, as_integer(one.fingerprint));
    adds.bind_text(4, one.shape);
    adds.run();
  }
  within.commit();
}

std::optional<stored_state> read_state(session& in, const actor_name& of) {
  std::optional<stored_state> found;
  {
    statement reads(in,
                    "SELECT \"schema\", fingerprint, number, value FROM durable_state "
                    "WHERE kind = ? AND key = ?");
    reads.bind_text(1, of.kind);
    reads.bind_text(2, of.key);
    if (reads.step())
      found = {static_cast<std::uint32_t>(reads.integer(0)),
               as_number(reads.integer(1)),
               copy_of(reads.bytes(3)),
               as_number(reads.integer(2)),
               {}};
  }
  statement reads(in,
                  "SELECT value FROM durable_events WHERE kind = ? AND key = ? AND number > ? "
                  "ORDER BY number");
  reads.bind_text(1, of.kind);
  reads.bind_text(2, of.key);
  reads.bind_integer(3, found ? as_integer(found->number) : 0);
  while (reads.step()) {
    if (!found) found.emplace();
    found->events.push_back(copy_of(reads.bytes(0)));
  }
  return found;
}

std::vector<stored_message> read_inbox(session& in, std::uint64_t after, std::size_t most) {
  std::vector<stored_message> found;
  statement reads(in, "SELECT * FROM durable_inbox WHERE number > ? ORDER BY number LIMIT ?");
  reads.bind_integer(1, as_integer(after));
  reads.bind_integer(2, static_cast<std::int64_t>(most));
  while (reads.step()) found.push_back(message_of(reads));
  return found;
}

found_message read_message(session& in, const message_id& id) {
  const packed_id packed_one = packed(id);
  found_message found;
  {
    statement reads(in,
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
  statement waits(in, "SELECT * FROM durable_inbox WHERE id = ? AND named = 1");
  waits.bind_bytes(1, packed_one);
  found.in_inbox = waits.step();
  if (found.in_inbox && !found.answer) found.call = call_identity::of(message_of(waits));
  return found;
}

}  // namespace

stored_reminder reminder_of(const statement& row) {
  stored_reminder one;
  one.to = {std::string(row.text(0)), std::string(row.text(1))};
  one.name = std::string(row.text(2));
  one.due = decltype(one.due)(std::chrono::milliseconds(row.integer(3)));
  one.rule = std::string(row.text(4));
  one.method = std::string(row.text(5));
  one.signature = as_number(row.integer(6));
  one.arguments = copy_of(row.bytes(7));
  if (row.columns() > 8) one.shard = static_cast<std::uint32_t>(row.integer(8));
  return one;
}

namespace {

std::vector<stored_reminder> read_reminders(session& in, std::size_t most) {
  std::vector<stored_reminder> found;
  statement reads(in, "SELECT * FROM durable_reminders ORDER BY due LIMIT ?");
  reads.bind_integer(1, static_cast<std::int64_t>(most));
  while (reads.step()) found.push_back(reminder_of(reads));
  return found;
}

}  // namespace

task<opened_storage> in_sqlite::open() {
  owner_ = as_integer(message_id::random().low >> 1);
  return on_thread(
      [owner = owner_, path = path_](session& in) { return open_tables(in, owner, path); });
}
task<> in_sqlite::keep_classes(std::vector<class_shape> added) {
  return on_thread([added = std::move(added)](session& in) { write_classes(in, added); });
}
task<std::optional<stored_state>> in_sqlite::load(actor_name of) {
  return on_thread([of = std::move(of)](session& in) { return read_state(in, of); });
}
task<std::vector<stored_message>> in_sqlite::inbox(std::uint64_t after, std::size_t most) {
  return on_thread([after, most](session& in) { return read_inbox(in, after, most); });
}
task<found_message> in_sqlite::find(message_id id) {
  return on_thread([id](session& in) { return read_message(in, id); });
}
task<std::vector<stored_reminder>> in_sqlite::reminders(std::size_t most) {
  return on_thread([most](session& in) { return read_reminders(in, most); });
}
task<> in_sqlite::commit(std::shared_ptr<const batch> all) {
  return on_thread([all = std::move(all), owner = owner_, path = path_](session& in) {
    write(in, *all, owner, path);
  });
}
task<std::uint64_t> in_sqlite::last_batch() {
  return on_thread([owner = owner_, path = path_](session& in) {
    check_owner(in, owner, path);
    return as_number(meta(in, "last_batch"));
  });
}

std::unique_ptr<storage> sqlite_storage(runtime& on, std::string path, sqlite::options chosen) {
  return std::make_unique<in_sqlite>(on, std::move(path), chosen);
}

}  // namespace troupe::durable
