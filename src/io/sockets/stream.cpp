#include "troupe/io/stream.hpp"

#include <utility>

namespace troupe::io {

descriptor& lease_job::prepare(operation_suspension& wait) const noexcept {
  wait.leased = true;
  wait.socket = kind_ == stream_kind::socket;
  wait.asks_first = kind_ == stream_kind::shared;
  return *from_;
}

// Bytes that came are returned, whatever happened after them.
io_buffer lease_job::finish(operation_suspension& wait) const {
  if (wait.done == 0) wait.check("read_some");
  return wait.take_buffer();
}

}  // namespace troupe::io
