// db: bare loops over sqlite3 and libpq, for the rows db/* and durable/turns.
#include <arpa/inet.h>
#include <libpq-fe.h>
#include <poll.h>
#include <sqlite3.h>

#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "../measure.hpp"
#include "work.hpp"

namespace {

void check(bool well) {
  if (!well) std::abort();
}

struct sqlite {
  explicit sqlite(const std::string& file) {
    check(sqlite3_open_v2(file.c_str(), &db,
                          SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                          nullptr) == SQLITE_OK);
    run("PRAGMA synchronous=FULL; PRAGMA journal_mode=WAL");
    run(db_work::sqlite_tables);
  }
  void run(const char* text) {
    check(sqlite3_exec(db, text, nullptr, nullptr, nullptr) == SQLITE_OK);
  }
  sqlite3_stmt* prepare(const char* text) {
    sqlite3_stmt* made = nullptr;
    check(sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr) == SQLITE_OK);
    return made;
  }
  sqlite3* db = nullptr;
};

void step(sqlite3_stmt* one) {
  check(sqlite3_step(one) == SQLITE_DONE);
  sqlite3_reset(one);
}

// 64 of them in a transaction, as many as the others have in flight: the lock of the file is taken
// once for all.
measure::result sqlite_query(unsigned, std::uint64_t size) {
  sqlite on(db_work::new_file());
  sqlite3_stmt *const find = on.prepare(db_work::find_text), *const begin = on.prepare("BEGIN"),
                      *const commit = on.prepare("COMMIT");
  measure::result r;
  const measure::stopwatch watch;
  while (r.check < size) {
    step(begin);
    for (int i = 0; i < db_work::in_flight; ++i, ++r.check) {
      const int id = db_work::id_of(r.check);
      sqlite3_bind_int64(find, 1, id);
      check(sqlite3_step(find) == SQLITE_ROW && sqlite3_column_int64(find, 0) == id);
      sqlite3_reset(find);
    }
    step(commit);
  }
  r.value = watch.ns_per(r.check);
  return r;
}

// 64 changes in a transaction.
measure::result sqlite_insert(unsigned, std::uint64_t size) {
  sqlite on(db_work::new_file());
  sqlite3_stmt *const add = on.prepare(db_work::add_text),
                      *const begin = on.prepare("BEGIN IMMEDIATE"),
                      *const commit = on.prepare("COMMIT");
  measure::result r;
  const measure::stopwatch watch;
  while (r.check < size) {
    step(begin);
    for (int i = 0; i < db_work::in_flight; ++i, ++r.check) {
      sqlite3_bind_int64(add, 1, static_cast<std::int64_t>(r.check));
      sqlite3_bind_text(add, 2, db_work::line, -1, SQLITE_STATIC);
      step(add);
    }
    step(commit);
  }
  r.value = watch.ns_per(r.check);
  return r;
}

// What durable/turns must do at least: 10,000 numbers in memory, each of which is written when it
// has changed; all messages of a round share a transaction, which also says that this process still
// has the file, and which transaction is the last.
measure::result durable_turns(unsigned, std::uint64_t size) {
  sqlite on(db_work::new_file());
  on.run(
      "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
      "INSERT INTO meta VALUES ('owner', 1), ('last', 0);"
      "CREATE TABLE state (kind TEXT NOT NULL, key TEXT NOT NULL, form INTEGER NOT NULL,"
      " fingerprint INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY (kind, key))"
      " WITHOUT ROWID");
  sqlite3_stmt *const begin = on.prepare("BEGIN IMMEDIATE"), *const commit = on.prepare("COMMIT"),
                      *const owner = on.prepare("SELECT value FROM meta WHERE name = 'owner'"),
                      *const last = on.prepare("UPDATE meta SET value = ? WHERE name = 'last'"),
                      *const write = on.prepare("INSERT OR REPLACE INTO state VALUES (?,?,?,?,?)");
  std::unordered_map<std::string, std::int64_t> actors;
  std::vector<std::string> keys;
  for (std::uint64_t i = 0; i < db_work::durable_actors; ++i)
    keys.push_back("actor " + std::to_string(i));
  measure::result r;
  const measure::stopwatch watch;
  for (std::int64_t round = 1; r.check + keys.size() <= size; ++round) {
    step(begin);
    check(sqlite3_step(owner) == SQLITE_ROW && sqlite3_column_int64(owner, 0) == 1);
    sqlite3_reset(owner);
    for (const std::string& key : keys) {
      const std::int64_t now = ++actors[key];
      sqlite3_bind_text(write, 1, "Counter", -1, SQLITE_STATIC);
      sqlite3_bind_text(write, 2, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
      sqlite3_bind_int64(write, 3, 1);
      sqlite3_bind_int64(write, 4, 0x1234567812345678);
      sqlite3_bind_blob(write, 5, &now, sizeof now, SQLITE_STATIC);
      step(write);
      ++r.check;
    }
    sqlite3_bind_int64(last, 1, round);
    step(last);
    step(commit);
  }
  r.value = watch.ns_per(r.check);
  return r;
}

void send(PGconn* pg, std::uint64_t query) {
  const std::uint32_t id = htonl(static_cast<std::uint32_t>(db_work::id_of(query)));
  const char* const value = reinterpret_cast<const char*>(&id);
  const int bytes = sizeof id, binary = 1;
  check(PQsendQueryPrepared(pg, "find", 1, &value, &bytes, &binary, 1) == 1);
  check(PQpipelineSync(pg) == 1);
}

// The answer to `query`, if it has one.
bool take(PGresult* result, std::uint64_t query) {
  const ExecStatusType is = PQresultStatus(result);
  if (is == PGRES_TUPLES_OK) {
    std::uint32_t number = 0;
    std::memcpy(&number, PQgetvalue(result, 0, 0), sizeof number);
    check(ntohl(number) == static_cast<std::uint32_t>(db_work::id_of(query)));
  }
  PQclear(result);
  return is == PGRES_PIPELINE_SYNC;
}

measure::result postgres_query(unsigned, std::uint64_t size) {
  PGconn* const pg = PQconnectdb(db_work::postgres_target().c_str());
  PQclear(PQexec(pg, db_work::postgres_tables));
  PQclear(PQprepare(pg, "find", db_work::find_text, 0, nullptr));
  check(PQsetnonblocking(pg, 1) == 0 && PQenterPipelineMode(pg) == 1);
  measure::result r;
  const measure::stopwatch watch;
  std::uint64_t sent = 0;
  while (sent < db_work::in_flight) send(pg, sent++);
  while (r.check < size) {
    pollfd wanted{PQsocket(pg), POLLIN, 0};
    check(::poll(&wanted, 1, -1) == 1 && PQconsumeInput(pg) == 1);
    while (r.check < size && PQisBusy(pg) == 0) {
      PGresult* const result = PQgetResult(pg);
      if (result == nullptr || !take(result, r.check)) continue;
      ++r.check;
      if (sent < size) send(pg, sent++);
    }
  }
  r.value = watch.ns_per(size);
  return r;
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr measure::entry table[] = {
      {"sqlite_query", 640'000, sqlite_query},
      {"sqlite_insert", 64'000, sqlite_insert},
      {"postgres_query", 192'000, postgres_query},
      {"durable_turns", 400'000, durable_turns},
  };
  measure::run_program(argc, argv, table);
}
