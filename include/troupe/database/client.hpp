// client: the operations that all databases have, so that one program runs on any of them.
#pragma once

#include "troupe/base/language.hpp"

#include <concepts>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "troupe/task/task.hpp"

namespace troupe::database {

// A sqlite::connection, a postgres::connection or a postgres::pool. A program that is to run on any
// of them is a template over its database, and uses only the operations that they share:
//
//   query<T>, query_one<T>, execute, execute_many, run_script and in_transaction;
//   parameters are `$1`, `$2`, … in the text;
//   the types of troupe/database/rows.hpp, and database::error with its kind.
//
// The statements are in the database's own SQL dialect; most are the same for all.
//
// Example (declarations):
//     #include <troupe/database/client.hpp>
//     struct Visit {
//       std::string page;
//       std::int64_t times;
//     };
//     template <troupe::database::client Database>
//     troupe::task<std::vector<Visit>> visit(Database db, std::string page) {
//       co_await db.execute(
//           "INSERT INTO visits VALUES ($1, 1) "
//           "ON CONFLICT (page) DO UPDATE SET times = visits.times + 1",
//           page);
//       co_return co_await db.template query<Visit>("SELECT page, times FROM visits");
//     }
template <class T>
concept client = requires(const T& db, std::string_view text) {
  { db.template query<int>(text, 1, text) } -> std::same_as<task<std::vector<int>>>;
  { db.template query_one<int>(text, 1, text) } -> std::same_as<task<std::optional<int>>>;
  db.execute(text, 1, text);
  db.execute_many(text, std::vector<std::tuple<int, std::string_view>>());
  { db.run_script(text) } -> std::same_as<task<>>;
};

}  // namespace troupe::database
