// snapshot: a point in a context's history to which it can be rolled back.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>

#include "troupe/context/context.hpp"

namespace troupe {

// An object of a few words; making one allocates nothing. Snapshots nest: each ends before older
// ones and before its context. A context may be rolled back to it any number of times. The end of a
// snapshot without a rollback discards nothing.
//
// Example:
//     troupe::owned_context connection = troupe::make_context();
//     troupe::snapshot idle(*connection);
//     for (int request = 0; request < 1'000'000; ++request) {
//       static_cast<void>(connection->allocate(500));
//       connection->rollback(idle);
//     }
//     std::cout << connection->bytes() << '\n';  // 4096
class snapshot {
 public:
  explicit snapshot(context& context) noexcept;
  snapshot(const snapshot&) = delete;
  snapshot& operator=(const snapshot&) = delete;
  ~snapshot();

 private:
  friend context;
  friend owned_context;
  friend contexts::access;
  context* context_;  // null if a rollback to an older snapshot has ended this one
  snapshot* const older_;
  contexts::block* const block_;
  std::byte* const at_;
  contexts::finalizer* const finalizers_;
  contexts::keep* keeps_;  // of objects persisted between the older snapshot and this one
};

// Rolls the context back at the end of the scope, after an exception as well.
//
// Example:
//     troupe::owned_context work = troupe::make_context();
//     for (int round = 0; round < 10; ++round) {
//       troupe::scoped_rollback each(*work);
//       std::pmr::string text("as long as this round", work.get());
//     }
class scoped_rollback {
 public:
  explicit scoped_rollback(context& context) noexcept : context_(context), before_(context) {}
  scoped_rollback(const scoped_rollback&) = delete;
  scoped_rollback& operator=(const scoped_rollback&) = delete;
  ~scoped_rollback() { context_.rollback(before_); }

 private:
  context& context_;
  snapshot before_;
};

}  // namespace troupe
