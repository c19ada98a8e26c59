// transaction_state: whether a session is in a transaction, and the rule for transaction scopes.
// The protocol: docs/protocols/database_sessions.md.
#pragma once

#include "troupe/base/language.hpp"

#include <cstdint>

#include "troupe/database/error.hpp"

namespace troupe::database {

// The state of a session between two statements, as reported by the database.
enum class transaction_state : std::uint8_t {
  none,    // each statement is a transaction by itself
  open,    // statements are part of a transaction
  failed,  // a statement of the transaction failed, and the database refuses the next ones
};

// The transaction scopes of one session, of which at most one is open: the scope of the body of
// in_transaction, or of statements that a session stores as one unit. Each database asks this class
// before and after each statement.
// Invariants
//   T1  a statement of a scope runs only while that scope is open and its transaction exists.
//   T2  a scope whose transaction has ended runs no further statement, and its commit fails.
// Thread: the session's.
class transaction_scopes {
 public:
  // The transaction has begun. Returns the number of its scope, which its statements carry; it is
  // never 0, and no other scope of this session has it.
  std::uint64_t open() noexcept;
  // The session itself has stored the transaction of the open scope, or asks the database to (T1,
  // T2).
  void commit() noexcept;
  // The transaction was rolled back, or is lost.
  void close() noexcept { current_ = 0; }
  bool is_open() const noexcept { return current_ != 0; }
  std::uint64_t current() const noexcept { return current_; }  // 0: none

  // Before a statement of this scope, or its commit (T1). Throws error (transaction_ended).
  void check(std::uint64_t scope, transaction_state now);
  // The same for a statement of the open scope, if any.
  void check_current(transaction_state now) {
    if (current_ != 0) check(current_, now);
  }
  // After a statement (T2). Returns false if the transaction of the open scope has ended.
  bool note(transaction_state now) noexcept {
    if (current_ != 0 && now == transaction_state::none) has_ended_ = true;
    return current_ == 0 || !has_ended_;
  }
  // The database reported that a statement has ended the transaction, even if the statement began
  // another transaction (T2).
  void end() noexcept { has_ended_ = true; }
  // The error (transaction_ended) of a statement whose transaction has ended.
  static error refusal(effect done = effect::none);
  [[noreturn]] static void refuse() { throw refusal(); }

 private:
  std::uint64_t last_ = 0;
  std::uint64_t current_ = 0;  // 0: no scope is open
  bool has_ended_ = false;     // of the current scope
};

}  // namespace troupe::database
