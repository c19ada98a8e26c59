#include "store.hpp"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "store_place.hpp"
#include "trust/visible.hpp"

namespace troupe_tool {
namespace {

using bytes = std::vector<std::byte>;
using troupe::task;

// ---- rows ----

struct class_row {
  std::string kind;
  std::int64_t schema;
  std::string shape;
};
struct count_row {
  std::string kind;
  std::int64_t actors;
};
struct state_row {
  std::int64_t schema, number;
  bytes value;
};
struct event_row {
  std::int64_t number;
  bytes value;
};
struct message_row {
  std::int64_t number;
  std::string kind, key, method;
  std::int64_t failures;
  bytes arguments;
};
struct dead_row {
  std::int64_t number;
  std::string kind, key, method;
  std::int64_t failures;
  std::string error_type, error;
  std::int64_t at;
};
struct reminder_row {
  std::string name;
  std::int64_t due;
  std::string rule, method;
};

// Runs `work`, a task, on the store.
template <class Work, class Database>
task<> look_into(Database& db, const Work& work) {
  auto checks = check_store(db);
  co_await std::move(checks);
  auto works = work(db);
  co_await std::move(works);
}

// Opens the store and runs `work`, a task, on a transaction of it.
template <class Work>
void with(const store_choices& chosen, bool writes, Work work) {
  troupe::runtime rt({.workers = 1});
#if TROUPE_TOOL_POSTGRES
  if (is_postgres(chosen.target)) {
    const troupe::postgres::connection db(rt, chosen.target);
    const auto body = [&work](troupe::postgres::transaction& all) -> task<> {
      return look_into(all, work);
    };
    auto done = rt.spawn(db.in_transaction(body, troupe::postgres::isolation::repeatable_read));
    rt.run();
    return done.get();
  }
#endif
  is_postgres(chosen.target);
  troupe::sqlite::options how;
  how.read_only = !writes;
  how.create = false;
  const sqlite_file db(rt, chosen.target, how);
  const auto body = [&work](troupe::sqlite::transaction& all) -> task<> {
    return look_into(all, work);
  };
  auto done = rt.spawn(writes ? db.in_transaction(body) : db.in_snapshot(body));
  rt.run();
  done.get();
}

std::string time_text(std::int64_t seconds) {
  const std::chrono::sys_seconds at{std::chrono::seconds(seconds)};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(at - day);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", int(date.year()),
                     unsigned(date.month()), unsigned(date.day()), time.hours().count(),
                     time.minutes().count(), time.seconds().count());
}

template <class Database>
task<std::int64_t> count(Database& db, std::string table) {
  const std::string text = "SELECT count(*) FROM " + table;
  auto asked = db.template query_one<std::int64_t>(text);
  const std::optional<std::int64_t> found = co_await std::move(asked);
  co_return found.value_or(0);
}

template <class Database>
task<> list(Database& db) {
  print("{:<24} {:>6} {:>12}\n", "class", "schema", "actors");
  auto asks_actors = db.template query<count_row>(
      "SELECT kind, count(*) AS actors FROM (SELECT kind, key FROM durable_state UNION "
      "SELECT kind, key FROM durable_events) AS named GROUP BY kind ORDER BY kind");
  const std::vector<count_row> counts = co_await std::move(asks_actors);
  auto asks_classes = db.template query<class_row>(
      "SELECT kind, \"schema\", shape FROM durable_classes ORDER BY kind, \"schema\"");
  const std::vector<class_row> classes = co_await std::move(asks_classes);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    // The names in the shape of a class or a method, which are kept beside it, are no class.
    const std::string kind = plain(db, classes[i].kind);
    if (kind.ends_with(" names") || kind.ends_with(" exact") || kind.ends_with(" full")) continue;
    const bool newest = i + 1 == classes.size() || classes[i + 1].kind != classes[i].kind;
    std::string actors;
    for (const count_row& one : counts) {
      if (newest && one.kind == classes[i].kind) actors = std::to_string(one.actors);
    }
    print("{:<24} {:>6} {:>12}\n", shown(kind), classes[i].schema, actors);
  }
  constexpr std::pair<const char*, const char*> tables[] = {{"messages that wait", "durable_inbox"},
                                                            {"dead letters", "durable_dead"},
                                                            {"reminders", "durable_reminders"},
                                                            {"stored answers", "durable_answers"}};
  for (const auto& [what, table] : tables) {
    auto counting = count(db, table);
    print("{:<24} {:>19}\n", what, co_await std::move(counting));
  }
}

template <class Database>
task<> show(Database& db, std::string of_class, std::string of_key) {
  const std::string kind = stored(db, of_class), key = stored(db, of_key);
  auto asks = db.template query_one<state_row>(
      "SELECT \"schema\", number, value FROM durable_state WHERE kind = $1 AND key = $2", kind,
      key);
  const std::optional<state_row> state = co_await std::move(asks);
  auto asks_events = db.template query<event_row>(
      "SELECT number, value FROM durable_events WHERE kind = $1 AND key = $2 AND number > $3 "
      "ORDER BY number",
      kind, key, state ? state->number : 0);
  const std::vector<event_row> events = co_await std::move(asks_events);
  if (!state && events.empty())
    throw failure("there is no " + of_class + " " + of_key +
                  " in the store; `ls` lists the classes");
  if (state) {
    auto asks_shape = db.template query_one<std::string>(
        "SELECT shape FROM durable_classes WHERE kind = $1 AND \"schema\" = $2", kind,
        state->schema);
    const std::optional<std::string> shape = co_await std::move(asks_shape);
    print("state, schema {}, {} bytes:\n{}\n", state->schema, state->value.size(),
          value_of(plain(db, shape.value_or("")), state->value).dump(2));
  }
  if (!events.empty()) print("{} events since then\n", events.size());
  auto asks_mail = db.template query<message_row>(
      "SELECT number, kind, key, method, failures, arguments FROM durable_inbox "
      "WHERE kind = $1 AND key = $2 ORDER BY number",
      kind, key);
  for (const message_row& one : co_await std::move(asks_mail))
    print("message {}: {}, {} bytes, {} failures\n", one.number, shown(plain(db, one.method)),
          one.arguments.size(), one.failures);
  auto asks_reminders = db.template query<reminder_row>(
      "SELECT name, due, rule, method FROM durable_reminders WHERE kind = $1 AND key = $2 "
      "ORDER BY due",
      kind, key);
  for (const reminder_row& one : co_await std::move(asks_reminders))
    print("reminder {}: {} at {} UTC{}{}\n", shown(plain(db, one.name)),
          shown(plain(db, one.method)), time_text(one.due / 1000), one.rule.empty() ? "" : ", ",
          shown(plain(db, one.rule)));
}

template <class Database>
task<> dead_letters(Database& db) {
  auto asks = db.template query<dead_row>(
      "SELECT number, kind, key, method, failures, error_type, error, at FROM durable_dead "
      "ORDER BY number");
  for (const dead_row& one : co_await std::move(asks))
    print("{} {} {} {}: {} ({}), {} failures, {} UTC\n", one.number, shown(plain(db, one.kind)),
          shown(plain(db, one.key)), shown(plain(db, one.method)), shown(plain(db, one.error)),
          shown(plain(db, one.error_type)), one.failures, time_text(one.at));
}

template <class Database>
task<> handle_again(Database& db, std::int64_t number) {
  auto adds = db.execute(
      "INSERT INTO durable_inbox SELECT number, id, named, 0, kind, key, asker, method, "
      "signature, arguments, 0 FROM durable_dead WHERE number = $1",
      number);
  const auto added = co_await std::move(adds);
  if (added.rows == 0) throw failure("there is no dead letter " + std::to_string(number));
  auto removes = db.execute("DELETE FROM durable_dead WHERE number = $1", number);
  co_await std::move(removes);
}

}  // namespace

void list_store(const store_choices& chosen) {
  with(chosen, false, [](auto& db) { return list(db); });
}
void show_stored(const store_choices& chosen) {
  with(chosen, false, [&](auto& db) { return show(db, chosen.kind, chosen.key); });
}
void show_dead_letters(const store_choices& chosen) {
  with(chosen, chosen.again != 0, [&](auto& db) {
    return chosen.again == 0 ? dead_letters(db)
                             : handle_again(db, static_cast<std::int64_t>(chosen.again));
  });
}

}  // namespace troupe_tool
