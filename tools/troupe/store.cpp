#include "store.hpp"

#include <fmt/format.h>

#include <algorithm>
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
    for (const count_row& count : counts) {
      if (newest && count.kind == classes[i].kind) actors = std::to_string(count.actors);
    }
    print("{:<24} {:>6} {:>12}\n", shown(kind), classes[i].schema, actors);
  }
  constexpr std::pair<const char*, const char*> tables[] = {{"messages that wait", "durable_inbox"},
                                                            {"dead letters", "durable_dead"},
                                                            {"reminders", "durable_reminders"},
                                                            {"stored answers", "durable_answers"}};
  for (const auto& [noun, table] : tables) {
    auto counting = count(db, table);
    print("{:<24} {:>19}\n", noun, co_await std::move(counting));
  }
}

// One query for each kind of row, so that a page of a large class reads no more than a page.
template <class Database>
task<std::vector<std::string>> keys_from(Database& db, std::string kind, std::string first,
                                         bool is_behind, std::int64_t at_most) {
  const std::string where = std::string(" WHERE kind = $1 AND key ") + (is_behind ? ">" : ">=") +
                            " $2 ORDER BY key LIMIT $3) AS ";
  const std::string text = "SELECT key FROM (SELECT key FROM durable_state" + where +
                           "states UNION SELECT key FROM (SELECT DISTINCT key FROM durable_events" +
                           where + "events ORDER BY key LIMIT $3";
  auto asks = db.template query<std::string>(text, kind, first, at_most);
  co_return co_await std::move(asks);
}

template <class Database>
task<> check_class(Database& db, std::string of_class) {
  auto asks = db.template query_one<std::int64_t>(
      "SELECT count(*) FROM durable_classes WHERE kind = $1", stored(db, of_class));
  const std::optional<std::int64_t> found = co_await std::move(asks);
  if (found.value_or(0) == 0)
    throw failure("there is no class " + of_class + " in the store; `ls` lists the classes");
}

template <class Database>
task<> list_keys_of(Database& db, const store_choices& chosen) {
  const std::string kind = stored(db, chosen.kind), prefix = stored(db, chosen.prefix);
  const std::string after = stored(db, chosen.after.value_or(""));
  const bool is_behind = chosen.after && after >= prefix;
  // One more says whether there is another page.
  auto asks = keys_from(db, kind, is_behind ? after : prefix, is_behind, chosen.count + 1);
  std::vector<std::string> keys = co_await std::move(asks);
  if (keys.empty()) {
    auto checks = check_class(db, chosen.kind);
    co_await std::move(checks);
  }
  std::erase_if(keys, [&](const std::string& key) { return !key.starts_with(prefix); });
  const std::size_t count = std::min(keys.size(), static_cast<std::size_t>(chosen.count));
  for (std::size_t i = 0; i < count; ++i) print("{}\n", shown(plain(db, keys[i])));
  if (keys.size() > count)
    put(fmt::format("troupe: there are more keys: --after '{}' shows the next ones\n",
                    shown(plain(db, keys[count - 1]))),
        stderr);
}

// An event has no number of a schema: the newest shape is taken. An event that it does not explain,
// or of a class that an old version has written without a shape of its events, is shown as
// hexadecimal digits.
template <class Database>
task<> show_events(Database& db, std::string of_class, const std::vector<event_row>& events) {
  auto asks = db.template query_one<std::string>(
      "SELECT shape FROM durable_classes WHERE kind = $1 ORDER BY \"schema\" DESC LIMIT 1",
      stored(db, of_class + " event"));
  const std::optional<std::string> found = co_await std::move(asks);
  const std::string shape = plain(db, found.value_or(""));
  for (const event_row& event : events)
    print("event {}: {}\n", event.number, value_of(shape, event.value).dump());
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
  if (!events.empty()) {
    print("{} events{}\n", events.size(), state ? " since then" : ", and no state yet");
    auto shows = show_events(db, of_class, events);
    co_await std::move(shows);
  }
  auto asks_mail = db.template query<message_row>(
      "SELECT number, kind, key, method, failures, arguments FROM durable_inbox "
      "WHERE kind = $1 AND key = $2 ORDER BY number",
      kind, key);
  for (const message_row& message : co_await std::move(asks_mail))
    print("message {}: {}, {} bytes, {} failures\n", message.number,
          shown(plain(db, message.method)), message.arguments.size(), message.failures);
  auto asks_reminders = db.template query<reminder_row>(
      "SELECT name, due, rule, method FROM durable_reminders WHERE kind = $1 AND key = $2 "
      "ORDER BY due",
      kind, key);
  for (const reminder_row& reminder : co_await std::move(asks_reminders))
    print("reminder {}: {} at {} UTC{}{}\n", shown(plain(db, reminder.name)),
          shown(plain(db, reminder.method)), time_text(reminder.due / 1000),
          reminder.rule.empty() ? "" : ", ", shown(plain(db, reminder.rule)));
}

template <class Database>
task<> dead_letters(Database& db) {
  auto asks = db.template query<dead_row>(
      "SELECT number, kind, key, method, failures, error_type, error, at FROM durable_dead "
      "ORDER BY number");
  for (const dead_row& letter : co_await std::move(asks))
    print("{} {} {} {}: {} ({}), {} failures, {} UTC\n", letter.number,
          shown(plain(db, letter.kind)), shown(plain(db, letter.key)),
          shown(plain(db, letter.method)), shown(plain(db, letter.error)),
          shown(plain(db, letter.error_type)), letter.failures, time_text(letter.at));
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
void list_keys(const store_choices& chosen) {
  with(chosen, false, [&](auto& db) { return list_keys_of(db, chosen); });
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
