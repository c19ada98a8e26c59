#include "durable_postgres/batch_writer.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "database/integers.hpp"
#include "durable/storage/packed_id.hpp"
#include "durable_postgres/array_text.hpp"

namespace troupe::durable {
namespace {

using database::as_integer;

// The last element of each key: a statement may write a row once.
template <class T, class Key>
std::vector<const T*> last_ones(const std::vector<T>& all, Key key_of) {
  std::set<decltype(key_of(all.front()))> seen;
  std::vector<const T*> found;
  for (auto at = all.rbegin(); at != all.rend(); ++at) {
    if (seen.insert(key_of(*at)).second) found.push_back(&*at);
  }
  std::ranges::reverse(found);
  return found;
}

struct message_columns {
  array_text number, id, named, origin, kind, key, asker, method, signature, arguments, failures;
  array_text shard;  // in a cluster

  void add(const stored_message& message) {
    number.add(as_integer(message.order));
    id.add_bytes(packed(message.id));
    named.add(message.named ? 1 : 0);
    origin.add(static_cast<int>(message.from));
    kind.add_text(message.to.kind);
    key.add_text(message.to.key);
    asker.add_bytes(packed(message.asker));
    method.add_text(message.method);
    signature.add(as_integer(message.signature));
    arguments.add_bytes(message.arguments);
    failures.add(message.failures);
    shard.add(message.shard);
  }
};

}  // namespace

task<> batch_writer::run(task<postgres::changes> statement) { co_await std::move(statement); }

std::vector<task<>> batch_writer::statements_of(const batch& all) {
  add_inbox(all);
  add_states(all);
  add_answers(all);
  add_dead(all);
  add_reminders(all);
  add_fired_reminders(all);
  if (in_cluster_) return std::move(statements_);
  // Numbers of messages are not used again, even when the inbox is empty.
  add("UPDATE durable_meta SET value = "
      "CASE name WHEN 'last_batch' THEN $1::bigint ELSE greatest(value, $2::bigint) END "
      "WHERE name IN ('last_batch', 'last_number')",
      as_integer(all.number), all.arrived.empty() ? 0 : as_integer(all.arrived.back()->order));
  return std::move(statements_);
}

void batch_writer::add_arrived(const batch& all) {
  message_columns rows;
  for (const auto& message : all.arrived) rows.add(*message);
  const auto add_rows = [&](std::string_view text, auto&&... more) {
    add(text, rows.number.take(), rows.id.take(), rows.named.take(), rows.origin.take(),
        rows.kind.take(), rows.key.take(), rows.asker.take(), rows.method.take(),
        rows.signature.take(), rows.arguments.take(), rows.failures.take(), more...);
  };
  if (in_cluster_) {
    add_rows(
        "INSERT INTO durable_inbox SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::integer[], "
        "$4::integer[], $5::text[], $6::text[], $7::bytea[], $8::text[], $9::bigint[], "
        "$10::bytea[], $11::integer[], $12::integer[])",
        rows.shard.take());
  } else {
    add_rows(
        "INSERT INTO durable_inbox SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::integer[], "
        "$4::integer[], $5::text[], $6::text[], $7::bytea[], $8::text[], $9::bigint[], "
        "$10::bytea[], $11::integer[])");
  }
}

void batch_writer::add_inbox(const batch& all) {
  if (!all.arrived.empty()) add_arrived(all);
  if (!all.failed.empty()) {
    array_text number, failures;
    for (const batch::failed_message* failed :
         last_ones(all.failed, [](const auto& each) { return each.order; })) {
      number.add(as_integer(failed->order));
      failures.add(failed->failures);
    }
    add("UPDATE durable_inbox AS i SET failures = n.failures "
        "FROM unnest($1::bigint[], $2::integer[]) AS n(number, failures) "
        "WHERE i.number = n.number",
        number.take(), failures.take());
  }
  if (!all.handled.empty()) {
    array_text number;
    for (const std::uint64_t order : all.handled) number.add(as_integer(order));
    add("DELETE FROM durable_inbox WHERE number = ANY($1::bigint[])", number.take());
  }
}

void batch_writer::add_states(const batch& all) {
  if (!all.states.empty()) {
    array_text kind, key, schema, fingerprint, number, value;
    for (const batch::changed_state* changed :
         last_ones(all.states, [](const auto& each) { return each.actor; })) {
      kind.add_text(changed->actor.kind);
      key.add_text(changed->actor.key);
      schema.add(changed->state.schema);
      fingerprint.add(as_integer(changed->state.fingerprint));
      number.add(as_integer(changed->state.number));
      value.add_bytes(changed->state.value);
    }
    add("INSERT INTO durable_state SELECT * FROM unnest($1::text[], $2::text[], $3::integer[], "
        "$4::bigint[], $5::bigint[], $6::bytea[]) ON CONFLICT (kind, key) DO UPDATE SET "
        "\"schema\" = excluded.\"schema\", fingerprint = excluded.fingerprint, "
        "number = excluded.number, value = excluded.value",
        kind.take(), key.take(), schema.take(), fingerprint.take(), number.take(), value.take());
  }
  if (!all.events.empty()) {
    array_text kind, key, number, value;
    for (const batch::appended_event& event : all.events) {
      kind.add_text(event.actor.kind);
      key.add_text(event.actor.key);
      number.add(as_integer(event.number));
      value.add_bytes(event.value);
    }
    add("INSERT INTO durable_events "
        "SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[])",
        kind.take(), key.take(), number.take(), value.take());
  }
}

void batch_writer::add_answers(const batch& all) {
  if (!all.answers.empty()) {
    array_text id, asker, at, failed, error_type, value;
    for (const stored_answer* answer :
         last_ones(all.answers, [](const auto& each) { return each.id; })) {
      id.add_bytes(packed(answer->id));
      asker.add_bytes(packed(answer->asker));
      at.add(answer->at.time_since_epoch().count());
      failed.add(answer->failed ? 1 : 0);
      error_type.add_text(answer->error_type);
      value.add_bytes(answer->value);
    }
    add("INSERT INTO durable_answers SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], "
        "$4::integer[], $5::text[], $6::bytea[]) ON CONFLICT (id) DO UPDATE SET "
        "asker = excluded.asker, at = excluded.at, failed = excluded.failed, "
        "error_type = excluded.error_type, value = excluded.value",
        id.take(), asker.take(), at.take(), failed.take(), error_type.take(), value.take());
    add_calls(all);
  }
  if (!all.ended.empty()) {
    array_text asker;
    for (const message_id& id : all.ended) asker.add_bytes(packed(id));
    add("DELETE FROM durable_answers WHERE asker = ANY($1::bytea[]) "
        "AND asker <> '\\x00000000000000000000000000000000'",
        asker.take());
  }
  if (all.forget_before.time_since_epoch().count() != 0) forget_answers(all);
}

void batch_writer::add_calls(const batch& all) {
  array_text id, method, arguments, at;
  bool any = false;
  for (const stored_answer* answer :
       last_ones(all.answers, [](const auto& each) { return each.id; })) {
    if (answer->call.method.empty()) continue;
    any = true;
    id.add_bytes(packed(answer->id));
    method.add_text(answer->call.method);
    arguments.add(as_integer(answer->call.arguments));
    at.add(answer->at.time_since_epoch().count());
  }
  if (!any) return;
  add("INSERT INTO durable_calls SELECT * FROM unnest($1::bytea[], $2::text[], $3::bigint[], "
      "$4::bigint[]) ON CONFLICT (id) DO UPDATE SET method = excluded.method, "
      "arguments = excluded.arguments, at = excluded.at",
      id.take(), method.take(), arguments.take(), at.take());
}

void batch_writer::forget_answers(const batch& all) {
  const std::int64_t before = all.forget_before.time_since_epoch().count();
  if (in_cluster_) {
    // In a cluster a message that is still in the inbox may be sent to another node once more, or
    // ask once more. Nodes do this at the same time: none waits for another one's rows.
    add("WITH old AS (SELECT a.id FROM durable_answers AS a WHERE a.at < $1::bigint "
        "AND NOT EXISTS (SELECT FROM durable_inbox WHERE id = a.id) "
        "AND NOT EXISTS (SELECT FROM durable_inbox WHERE id = a.asker) "
        "FOR UPDATE OF a SKIP LOCKED) "
        "DELETE FROM durable_answers AS a USING old WHERE a.id = old.id",
        before);
  } else {
    add("DELETE FROM durable_answers WHERE at < $1::bigint "
        "AND asker = '\\x00000000000000000000000000000000'",
        before);
  }
  add("WITH old AS (SELECT c.id FROM durable_calls AS c WHERE c.at < $1::bigint "
      "AND NOT EXISTS (SELECT FROM durable_answers AS a WHERE a.id = c.id) "
      "FOR UPDATE OF c SKIP LOCKED) "
      "DELETE FROM durable_calls AS c USING old WHERE c.id = old.id",
      before);
}

void batch_writer::add_dead(const batch& all) {
  if (all.dead.empty()) return;
  message_columns rows;
  array_text error_type, error, at;
  for (const dead_letter* letter :
       last_ones(all.dead, [](const auto& each) { return each.message.order; })) {
    rows.add(letter->message);
    error_type.add_text(letter->error_type);
    error.add_text(letter->error);
    at.add(letter->at.time_since_epoch().count());
  }
  add("INSERT INTO durable_dead SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::integer[], "
      "$4::integer[], $5::text[], $6::text[], $7::bytea[], $8::text[], $9::bigint[], "
      "$10::bytea[], $11::integer[], $12::text[], $13::text[], $14::bigint[]) "
      "ON CONFLICT (number) DO UPDATE SET failures = excluded.failures, "
      "error_type = excluded.error_type, error = excluded.error, at = excluded.at",
      rows.number.take(), rows.id.take(), rows.named.take(), rows.origin.take(), rows.kind.take(),
      rows.key.take(), rows.asker.take(), rows.method.take(), rows.signature.take(),
      rows.arguments.take(), rows.failures.take(), error_type.take(), error.take(), at.take());
}

void batch_writer::add_set_reminders(const batch& all) {
  array_text kind, key, name, due, rule, method, signature, arguments, shard;
  for (const stored_reminder* reminder :
       last_ones(all.reminders, [](const auto& each) { return std::pair(each.to, each.name); })) {
    kind.add_text(reminder->to.kind);
    key.add_text(reminder->to.key);
    name.add_text(reminder->name);
    due.add(reminder->due.time_since_epoch().count());
    rule.add_text(reminder->rule);
    method.add_text(reminder->method);
    signature.add(as_integer(reminder->signature));
    arguments.add_bytes(reminder->arguments);
    shard.add(reminder->shard);
  }
  const auto add_rows = [&](std::string_view text, auto&&... more) {
    add(text, kind.take(), key.take(), name.take(), due.take(), rule.take(), method.take(),
        signature.take(), arguments.take(), more...);
  };
  if (in_cluster_) {
    add_rows(
        "INSERT INTO durable_reminders SELECT * FROM unnest($1::text[], $2::text[], $3::text[], "
        "$4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::bytea[], $9::integer[]) "
        "ON CONFLICT (kind, key, name) DO UPDATE SET due = excluded.due, rule = excluded.rule, "
        "method = excluded.method, signature = excluded.signature, "
        "arguments = excluded.arguments, shard = excluded.shard",
        shard.take());
  } else {
    add_rows(
        "INSERT INTO durable_reminders SELECT * FROM unnest($1::text[], $2::text[], $3::text[], "
        "$4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::bytea[]) "
        "ON CONFLICT (kind, key, name) DO UPDATE SET due = excluded.due, rule = excluded.rule, "
        "method = excluded.method, signature = excluded.signature, "
        "arguments = excluded.arguments");
  }
}

void batch_writer::add_reminders(const batch& all) {
  if (!all.reminders.empty()) add_set_reminders(all);
  if (!all.removed_reminders.empty()) {
    array_text kind, key, name;
    for (const batch::reminder_name& reminder : all.removed_reminders) {
      kind.add_text(reminder.actor.kind);
      key.add_text(reminder.actor.key);
      name.add_text(reminder.name);
    }
    add("DELETE FROM durable_reminders WHERE (kind, key, name) IN "
        "(SELECT * FROM unnest($1::text[], $2::text[], $3::text[]))",
        kind.take(), key.take(), name.take());
  }
}

void batch_writer::add_fired_reminders(const batch& all) {
  struct columns {
    array_text kind, key, name, due, next;
    bool any = false;
  } moved, removed;
  for (const batch::fired_reminder& reminder : all.fired_reminders) {
    columns& target = reminder.next ? moved : removed;
    target.any = true;
    target.kind.add_text(reminder.actor.kind);
    target.key.add_text(reminder.actor.key);
    target.name.add_text(reminder.name);
    target.due.add(reminder.due.time_since_epoch().count());
    if (reminder.next) target.next.add(reminder.next->time_since_epoch().count());
  }
  if (moved.any)
    add("UPDATE durable_reminders AS r SET due = n.next "
        "FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[]) "
        "AS n(kind, key, name, due, next) "
        "WHERE r.kind = n.kind AND r.key = n.key AND r.name = n.name AND r.due = n.due",
        moved.kind.take(), moved.key.take(), moved.name.take(), moved.due.take(),
        moved.next.take());
  if (removed.any)
    add("DELETE FROM durable_reminders WHERE (kind, key, name, due) IN "
        "(SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]))",
        removed.kind.take(), removed.key.take(), removed.name.take(), removed.due.take());
}

}  // namespace troupe::durable
