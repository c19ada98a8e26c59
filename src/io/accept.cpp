#include "troupe/io/accept.hpp"

#include "troupe/task/current_actor.hpp"

namespace troupe::io {

// The coroutine has gone without asking: nobody else has the connection.
accept_base::~accept_base() {
  if (unclaimed_ != nullptr && !unclaimed_->pending && unclaimed_->result > 0) descriptor(unclaimed_->result).close();
}

descriptor& accept_base::prepare(operation_wait& wait) noexcept {
  wait.weak = weak_;
  unclaimed_ = &wait;
  return *listener_;
}

descriptor accept_base::take(operation_wait& wait) {
  unclaimed_ = nullptr;
  wait.check("accept");
  descriptor made(wait.result);
  made.bind(*tasks::current_io());
  return made;
}

}  // namespace troupe::io
