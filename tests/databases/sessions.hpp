// sessions: one suite for the sessions of all databases. A database gives a `place`: its
// connection, its transaction, how a connection is opened, and its table of statements.
// docs/protocols/database_sessions.md has the rule.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "troupe/database/error.hpp"
#include "troupe/troupe.hpp"

namespace troupe::test {

// How a statement is run in the body of a transaction.
enum class run_as : std::uint8_t { statement, script, many, reads_a_number, runs_out_of_time };

// What becomes of the transaction.
enum class then : std::uint8_t {
  open,      // further statements are a part of it, and it is stored
  failed,    // the database refuses further statements, and nothing is stored
  ended,     // the same, and each call says failure::transaction_ended
  any_rule,  // any of them: it depends on the version of the database, or on the time
};

struct session_case {
  const char* name;
  const char* text;
  run_as how;
  then after;
  bool refused = true;  // whether the call itself fails
};

// The kind of failure with which a call ends, and its effect.
struct call_end {
  std::optional<database::failure> failed;
  database::effect effect = database::effect::none;
  bool threw = false;
  std::string text;
};
template <class Call>
task<call_end> end_of_call(Call call) {
  call_end end;
  try {
    auto runs = call();
    co_await std::move(runs);
  } catch (const database::error& failed) {
    end = {failed.kind(), failed.effect(), true, failed.what()};
  } catch (const std::exception& failed) {
    end = {std::nullopt, database::effect::unknown, true, failed.what()};
  }
  co_return end;
}

template <class Calls>
task<> run_case(Calls& on, const session_case& one) {
  switch (one.how) {
    case run_as::statement: {
      auto runs = on.execute(one.text);
      co_await std::move(runs);
      co_return;
    }
    case run_as::script: {
      auto runs = on.run_script(one.text);
      co_await std::move(runs);
      co_return;
    }
    case run_as::many: {
      std::vector<std::tuple<int>> rows{{10}, {1}};
      auto runs = on.execute_many(one.text, std::move(rows));
      co_await std::move(runs);
      co_return;
    }
    case run_as::reads_a_number: {
      auto runs = on.template query_one<std::uint8_t>(one.text);
      co_await std::move(runs);
      co_return;
    }
    case run_as::runs_out_of_time: {
      const auto call = [&] { return on.execute(one.text); };
      auto runs = with_deadline(std::chrono::milliseconds(50), call);
      co_await std::move(runs);
      co_return;
    }
  }
}

// A body that keeps the failure of the statement to itself, and the failures behind it if
// `keeps_all`.
template <class Place>
task<> check_case(typename Place::connection db, session_case one, bool keeps_all) {
  using transaction = typename Place::transaction;
  auto prepares = db.run_script(Place::tables);
  co_await std::move(prepares);
  call_end first, behind;
  const auto body = [&](transaction& within) -> task<> {
    auto before = within.execute("INSERT INTO log VALUES ('before')");
    co_await std::move(before);
    const auto call = [&] { return run_case(within, one); };
    auto ends = end_of_call(call);
    first = co_await std::move(ends);
    const auto next = [&] { return within.execute("INSERT INTO log VALUES ('behind')"); };
    auto next_ends = end_of_call(next);
    behind = co_await std::move(next_ends);
    if (!keeps_all && behind.threw) throw std::runtime_error(behind.text);
  };
  const auto all = [&] { return db.in_transaction(body); };
  auto runs = end_of_call(all);
  const call_end whole = co_await std::move(runs);
  EXPECT_EQ(first.threw, one.refused) << one.name << ": " << first.text;
  auto counts = db.template query_one<std::int64_t>("SELECT count(*) FROM log");
  const auto stored = co_await std::move(counts);
  EXPECT_EQ(stored, whole.threw ? 0 : 2) << one.name << ": half of it is stored; " << whole.text;
  if (one.after == then::any_rule) co_return;
  EXPECT_EQ(whole.threw, one.after != then::open) << one.name << ": " << whole.text;
  EXPECT_EQ(behind.threw, one.after != then::open) << one.name << ": " << behind.text;
  if (one.after == then::ended) {
    EXPECT_EQ(behind.failed, database::failure::transaction_ended) << one.name << behind.text;
  }
  if (keeps_all && one.after != then::open) {
    EXPECT_EQ(whole.failed, database::failure::transaction_ended) << one.name << whole.text;
  }
}

template <class Place>
task<> check_all_cases(typename Place::connection db) {
  for (const session_case& one : Place::cases()) {
    for (const bool keeps_all : {false, true}) {
      auto checks = check_case<Place>(db, one, keeps_all);
      co_await std::move(checks);
    }
  }
}

// A call whose answer cannot be read, of a statement that has changed something: it is undone, or
// the effect is unknown.
template <class T, class Place>
task<> check_effect(typename Place::connection db, const char* text) {
  auto prepares = db.run_script(Place::tables);
  co_await std::move(prepares);
  const auto call = [&] { return db.template query_one<T>(text); };
  auto runs = end_of_call(call);
  const call_end end = co_await std::move(runs);
  EXPECT_TRUE(end.failed.has_value()) << text;
  auto reads = db.template query_one<std::string>(
      "SELECT count(*) || ' rows, sum ' || sum(id) FROM counted");
  const auto left = co_await std::move(reads);
  if (end.effect == database::effect::none) {
    EXPECT_EQ(left, "2 rows, sum 3") << text << end.text;
  }
}
template <class Place>
task<> check_effects(typename Place::connection db) {
  auto several = check_effect<int, Place>(db, "UPDATE counted SET id = id + 10 RETURNING id");
  co_await std::move(several);
  auto kind = check_effect<int, Place>(db, "INSERT INTO counted VALUES (5, 'q') RETURNING n");
  co_await std::move(kind);
  auto range = check_effect<std::uint8_t, Place>(
      db, "UPDATE counted SET id = 1000 WHERE id = 1 RETURNING id");
  co_await std::move(range);
  auto columns = check_effect<std::tuple<int, int>, Place>(
      db, "DELETE FROM counted WHERE id = 1 RETURNING id");
  co_await std::move(columns);
}

// The calls that take the text of a statement, by the names that the headers of a component have.
inline std::set<std::string> calls_with_text(const std::vector<std::string>& headers) {
  std::set<std::string> names;
  const char* const root = std::getenv("TROUPE_SOURCE_DIR");
  const std::regex call(R"((\w+)\(std::string_view text)");
  for (const std::string& header : headers) {
    std::ifstream in(std::string(root == nullptr ? "." : root) + "/include/troupe/" + header);
    const std::string all{std::istreambuf_iterator<char>(in), {}};
    for (std::sregex_iterator at(all.begin(), all.end(), call), end; at != end; ++at)
      names.insert((*at)[1]);
  }
  return names;
}

// Each call, with a text, on a connection or on a transaction. A component with more calls adds
// them in Place::more_calls.
template <class Calls>
struct named_call {
  const char* name;
  std::function<task<>(Calls&, std::string)> run;
};
template <class T>
task<> drop_result(task<T> call) {
  static_cast<void>(co_await std::move(call));
}
template <class Calls>
std::vector<named_call<Calls>> shared_calls() {
  return {
      {"query",
       [](Calls& on, std::string text) { return drop_result(on.template query<int>(text)); }},
      {"query_one",
       [](Calls& on, std::string text) { return drop_result(on.template query_one<int>(text)); }},
      {"execute", [](Calls& on, std::string text) { return drop_result(on.execute(text)); }},
      {"execute_many",
       [](Calls& on, std::string text) {
         return drop_result(on.execute_many(text, std::vector<std::tuple<int>>{{1}}));
       }},
      {"run_script", [](Calls& on, std::string text) { return on.run_script(text); }},
  };
}

// Of calls with a zero byte in their text: each is refused, and has done nothing.
template <class Place, class Calls>
task<> check_zero_bytes(Calls& on) {
  for (const auto& call : Place::template calls<Calls>()) {
    const std::string text("DELETE FROM counted\0 WHERE id = 1", 33);
    const auto runs = [&] { return call.run(on, text); };
    auto ends = end_of_call(runs);
    const call_end end = co_await std::move(ends);
    EXPECT_EQ(end.failed, database::failure::statement) << call.name << ": " << end.text;
    EXPECT_NE(end.text.find("zero byte"), std::string::npos) << call.name << ": " << end.text;
  }
}
// Of calls of a transaction that has ended: each says so.
template <class Place>
task<> check_ended_scope(typename Place::connection db) {
  using transaction = typename Place::transaction;
  auto prepares = db.run_script(Place::tables);
  co_await std::move(prepares);
  std::vector<call_end> ends;
  const auto body = [&](transaction& within) -> task<> {
    auto dies = Place::end_transaction(within);
    co_await std::move(dies);
    for (const auto& call : Place::template calls<transaction>()) {
      const auto runs = [&] { return call.run(within, "INSERT INTO counted VALUES (7, 'x')"); };
      auto ends_now = end_of_call(runs);
      ends.push_back(co_await std::move(ends_now));
    }
  };
  const auto all = [&] { return db.in_transaction(body); };
  auto runs = end_of_call(all);
  const call_end whole = co_await std::move(runs);
  EXPECT_EQ(whole.failed, Place::ended_kind) << whole.text;
  EXPECT_EQ(ends.size(), Place::template calls<transaction>().size());
  for (const call_end& one : ends) EXPECT_EQ(one.failed, Place::ended_kind) << one.text;
  auto counts = db.template query_one<std::int64_t>("SELECT count(*) FROM counted");
  EXPECT_EQ(co_await std::move(counts), 2);
}
// A call of a transaction that begins when the transaction is stored already.
template <class Place>
task<> check_late_call(typename Place::connection db) {
  using transaction = typename Place::transaction;
  auto prepares = db.run_script(Place::tables);
  co_await std::move(prepares);
  std::optional<task<>> late;
  const auto body = [&](transaction& within) -> task<> {
    auto adds = within.execute("INSERT INTO log VALUES ('in')");
    co_await std::move(adds);
    late.emplace(drop_result(within.execute("INSERT INTO log VALUES ('late')")));
  };
  auto runs = db.in_transaction(body);
  co_await std::move(runs);
  const auto call = [&] { return std::move(*late); };
  auto ends = end_of_call(call);
  const call_end end = co_await std::move(ends);
  EXPECT_EQ(end.failed, database::failure::transaction_ended) << end.text;
  auto counts = db.template query_one<std::int64_t>("SELECT count(*) FROM log");
  EXPECT_EQ(co_await std::move(counts), 1);
}
template <class Place>
void check_all_calls_are_listed() {
  std::set<std::string> listed;
  for (const auto& call : Place::template calls<typename Place::connection>())
    listed.insert(call.name);
  EXPECT_EQ(calls_with_text(Place::headers), listed)
      << "a call that takes the text of a statement is not in the table, or not in the headers";
}

}  // namespace troupe::test
