#include "troupe/database/transaction_state.hpp"

namespace troupe::database {

error transaction_scopes::refusal(effect done) {
  return {failure::transaction_ended, 0,
          "troupe: the transaction of this call has ended: a statement of it failed and ended it, "
          "or it was committed or rolled back; nothing more of it is stored. Let the exception "
          "leave the body of in_transaction, and run the whole body again",
          rule::other, done};
}

}  // namespace troupe::database
