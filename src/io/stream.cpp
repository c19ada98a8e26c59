#include "troupe/io/stream.hpp"

#include <utility>

namespace troupe::io {

// The coroutine has gone without asking: nobody else has the buffer.
lease_job::~lease_job() {
  if (unclaimed_ != nullptr) unclaimed_->take_buffer();
}

descriptor& lease_job::prepare(operation_wait& wait) noexcept {
  wait.leased = true;
  wait.socket = kind_ == stream_kind::socket;
  wait.asks_first = kind_ == stream_kind::shared;
  unclaimed_ = &wait;
  return *from_;
}

// Bytes that came are given, whatever came after them.
io_buffer lease_job::finish(operation_wait& wait) {
  if (wait.done == 0) wait.check("read_some");
  unclaimed_ = nullptr;
  return wait.take_buffer();
}

}  // namespace troupe::io
