// error: a PostgreSQL server's report about a statement that failed.
#pragma once

#include "troupe/base/language.hpp"

#include <string>
#include <utility>

#include "troupe/database/error.hpp"

namespace troupe::postgres {

// As database::error, with the words of the server.
//
// Example (declarations):
//     #include <troupe/postgres/connection.hpp>
//     troupe::task<bool> add(troupe::postgres::connection db, std::string name) {
//       try {
//         co_await db.execute("INSERT INTO people VALUES ($1)", name);
//         co_return true;
//       } catch (const troupe::postgres::error& failed) {
//         if (failed.sqlstate() != "23505") throw;  // unique_violation
//         co_return false;
//       }
//     }
class error : public database::error {
 public:
  // The parts of the server's report beside its message. Empty: absent.
  struct words {
    std::string sqlstate;    // five characters; appendix A of PostgreSQL's manual lists them
    std::string detail;      // "Key (name)=(Ada) already exists."
    std::string constraint;  // the name of the rule that was broken
  };
  error(database::failure kind, const std::string& text, words said,
        database::rule broken = database::rule::other,
        database::effect done = database::effect::none)
      : database::error(kind, 0, text, broken, done), said_(std::move(said)) {}
  const std::string& sqlstate() const noexcept { return said_.sqlstate; }
  const std::string& detail() const noexcept { return said_.detail; }
  const std::string& constraint() const noexcept { return said_.constraint; }

 private:
  words said_;
};

}  // namespace troupe::postgres
