// store_place: the database in which durable actors lie: a SQLite file, or PostgreSQL by its URL.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "program.hpp"
#include "troupe/sqlite/connection.hpp"
#include "troupe/troupe.hpp"

#if TROUPE_TOOL_POSTGRES
#include "durable_postgres/array_text.hpp"
#include "troupe/postgres/connection.hpp"
#endif

namespace troupe_tool {

inline constexpr std::string_view url_schemes[] = {"postgresql://", "postgres://"};

// Throws failure if this program cannot ask PostgreSQL.
inline bool is_postgres(std::string_view target) {
  for (const std::string_view scheme : url_schemes) {
    if (!target.starts_with(scheme)) continue;
#if TROUPE_TOOL_POSTGRES
    return true;
#else
    throw failure("this troupe was built without PostgreSQL (Debian: libpq-dev)");
#endif
  }
  return false;
}

class sqlite_file : public troupe::sqlite::connection {
 public:
  using connection::connection;
  // work(session&), on the connection's thread.
  template <class Work>
  auto call(Work work) const {
    return run_on_thread(state(), std::move(work));
  }
  // body(transaction&) reads what was stored at one moment; the program may store more meanwhile.
  template <class Body>
  troupe::task<> in_snapshot(Body body) const {
    return read_one_moment(*this, std::move(body));
  }

 private:
  template <class Body>
  static troupe::task<> read_one_moment(sqlite_file db, Body body) {
    auto begins = db.call([](troupe::sqlite::session& session) {
      return session.begin(troupe::sqlite::transaction_access::read);
    });
    const std::uint64_t scope = co_await std::move(begins);
    troupe::sqlite::transaction inside(db.state(), scope);
    auto reads = body(inside);
    co_await std::move(reads);
    auto ends = db.call([](troupe::sqlite::session& session) { session.commit(); });
    co_await std::move(ends);
  }
};

// Throws failure if no durable actors lie in this database.
inline void check_found(bool is_found) {
  if (!is_found) throw failure("this database has no store of durable actors");
}
inline troupe::task<> check_store(troupe::sqlite::parts::calls& database) {
  auto looks = database.query_one<std::int64_t>(
      "SELECT count(*) FROM sqlite_master WHERE name = 'durable_meta'");
  check_found((co_await std::move(looks)).value_or(0) != 0);
}
#if TROUPE_TOOL_POSTGRES
inline troupe::task<> check_store(troupe::postgres::parts::calls& database) {
  auto looks = database.query_one<bool>("SELECT to_regclass('durable_meta') IS NOT NULL");
  check_found((co_await std::move(looks)).value_or(false));
}
#endif

// How a database keeps a text, and the text that it has kept.
inline std::string stored(const troupe::sqlite::parts::calls&, std::string text) { return text; }
inline std::string plain(const troupe::sqlite::parts::calls&, std::string text) { return text; }
#if TROUPE_TOOL_POSTGRES
inline std::string stored(const troupe::postgres::parts::calls&, const std::string& text) {
  return troupe::durable::stored_text(text);
}
inline std::string plain(const troupe::postgres::parts::calls&, const std::string& text) {
  return troupe::durable::text_of_stored(text);
}
#endif

}  // namespace troupe_tool
