// work: what the contestants of db/* have in common: the tables, and which rows are asked for.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace db_work {

constexpr int worlds = 10'000, in_flight = 64;
constexpr std::uint64_t durable_actors = 10'000;
constexpr const char* find_text = "SELECT number FROM world WHERE id = $1";
constexpr const char* add_text = "INSERT INTO log VALUES ($1, $2)";
constexpr const char* line = "some text of one line";
constexpr const char* sqlite_tables =
    "CREATE TABLE world (id INTEGER PRIMARY KEY, number INTEGER NOT NULL);"
    "CREATE TABLE log (id INTEGER NOT NULL, text TEXT NOT NULL);"
    "WITH RECURSIVE all_of (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM all_of WHERE n < 10000) "
    "INSERT INTO world SELECT n, n FROM all_of";
constexpr const char* postgres_tables =
    "DROP TABLE IF EXISTS world; CREATE TABLE world (id int PRIMARY KEY, number int NOT NULL);"
    "INSERT INTO world SELECT n, n FROM generate_series(1, 10000) AS n; ANALYZE world";

inline int id_of(std::uint64_t query) { return 1 + static_cast<int>(query * 7919 % worlds); }

// A new file beside the build, on a disk.
inline std::string new_file() {
  const std::filesystem::path folder = std::filesystem::current_path() / "build/bench_db";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder / "data.db";
}

// What with_postgres.sh has started.
inline std::string postgres_target() {
  const char* const target = std::getenv("BENCH_POSTGRES");
  if (target == nullptr) std::abort();
  return target;
}

}  // namespace db_work
