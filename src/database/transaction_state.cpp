#include "troupe/database/transaction_state.hpp"

#include "base/invariant.hpp"

namespace troupe::database {

std::uint64_t transaction_scopes::open() noexcept {
  TROUPE_INVARIANT(current_ == 0, "T1");
  has_ended_ = false;
  return current_ = ++last_;
}

void transaction_scopes::check(std::uint64_t scope, transaction_state now) {
  note(now);
  if (current_ != scope || has_ended_) refuse();
}

void transaction_scopes::commit() noexcept {
  TROUPE_INVARIANT(current_ != 0, "T1");
  TROUPE_INVARIANT(!has_ended_, "T2");
  close();
}

error transaction_scopes::refusal(effect done) {
  return {failure::transaction_ended, 0,
          "troupe: the transaction of this call has ended: a statement of it failed and ended it, "
          "or it was committed or rolled back; nothing more of it is stored. Let the exception "
          "leave the body of in_transaction, and run the whole body again",
          rule::other, done};
}

}  // namespace troupe::database
