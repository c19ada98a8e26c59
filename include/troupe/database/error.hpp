// error: what the clients of databases throw.
#pragma once

#include <cstdint>
#include <string>

#include "troupe/base/error.hpp"

namespace troupe::database {

// What kind of failure it was: by this, not by the text, a program decides what to do.
enum class failure : std::uint8_t {
  unreachable,    // there is no such file or server, or it may not be opened
  busy,           // others kept it locked for longer than the options allow: try again later
  full,           // no space is left on the disk, or a limit of the database was reached
  read_only,      // it may not be written
  corrupted,      // what is stored is damaged, or is no database
  constraint,     // a rule of a table forbids the change: unique, not null, foreign key, check
  statement,      // the text of the statement is wrong, or its parameters do not fit
  conversion,     // a value does not fit into the type that it is read into, or is given as
  too_many_rows,  // the answer is larger than the options allow, or than the call expects
  broken,         // the disk or the system failed: nothing is known but the code
};
const char* name_of(failure kind) noexcept;

// Thrown by operations of a database. After it, all that the statement had begun is undone; a
// transaction that it leaves is rolled back.
class error : public troupe::error {
 public:
  // `code`: that of the database itself.
  error(failure kind, int code, const std::string& text)
      : troupe::error(text), kind_(kind), code_(code) {}
  failure kind() const noexcept { return kind_; }
  int code() const noexcept { return code_; }

 private:
  failure kind_;
  int code_;
};

}  // namespace troupe::database
