// error: the exceptions of database clients.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "troupe/base/error.hpp"

namespace troupe::database {

// The kind of a failure, by which a program decides how to react; it does not parse the text.
enum class failure : std::uint8_t {
  unreachable,    // the file or server does not exist, or may not be opened
  busy,           // other users held a lock for longer than the options allow: try again later
  full,           // no space is left on the disk, or a limit of the database was reached
  read_only,      // it may not be written
  corrupted,      // the stored data is damaged, or is no database
  constraint,     // a rule of a table forbids the change: unique, not null, foreign key, check
  statement,      // the text of the statement is wrong, or its parameters do not fit
  conversion,     // a value does not fit into the type that it is read into, or is given as
  too_many_rows,  // the answer is larger than the options allow, or than the call expects
  broken,         // the disk or the system failed: nothing is known but the code
  lost,      // the connection to the server ended: effect() returns whether it may have been done
  conflict,  // another transaction changed the same data: run the whole transaction again
  denied,    // the user may not do that, or is not known
  // The transaction of the call ended before its scope did: nothing more of it is stored. Let the
  // exception leave the body, and run the whole transaction again.
  transaction_ended,
  // the server stopped the statement, which ran for longer than its settings allow, or which was
  // cancelled there
  too_slow,
  bad_target,  // the text that names the database makes no sense: nothing was asked
};
const char* name_of(failure kind) noexcept;

// The effect of the failed statement.
enum class effect : std::uint8_t {
  none,     // nothing
  unknown,  // its change may be stored: the answer was lost, or could not be read
};

// Which kind of rule a failure::constraint has met.
enum class rule : std::uint8_t { other, unique, not_null, foreign_key, check };

// Thrown by operations of a database. The failed statement's changes are undone, unless effect() is
// unknown; a transaction whose body it leaves is rolled back. The effect is unknown if the
// connection was lost while the statement ran, if a PostgreSQL server ran the statement and its
// answer could not be read, and if a part of a script or of a procedure was stored before the rest
// failed.
class error : public troupe::error {
 public:
  // `code`: the database's own code.
  error(failure kind, int code, const std::string& text, rule broken = rule::other,
        effect done = effect::none)
      : troupe::error(text), kind_(kind), rule_(broken), effect_(done), code_(code) {}
  failure kind() const noexcept { return kind_; }
  verdict judged() const noexcept override;
  int code() const noexcept { return code_; }
  database::rule broken_rule() const noexcept { return rule_; }
  database::effect effect() const noexcept { return effect_; }

 private:
  failure kind_;
  database::rule rule_;
  database::effect effect_;
  int code_;
};

}  // namespace troupe::database
