#include <cerrno>

#include "io/operations/broken_pipes.hpp"
#include "troupe/io/error.hpp"
#include "troupe/io/stream.hpp"

namespace troupe::io {

descriptor& send_file_job::prepare(operation_suspension& wait) const {
  if (from_ == nullptr)
    throw usage_error("troupe: send_file: the file is not open: it was closed or moved from");
  ignore_broken_pipes();
  wait.offset = static_cast<std::int64_t>(offset_);
  wait.extra = from_->fd;
  wait.bytes = bytes_;
  wait.whole = whole_;
  wait.socket = kind_ == stream_kind::socket;
  wait.asks_first = kind_ == stream_kind::shared;
  return *to_;
}

std::size_t send_file_job::finish(operation_suspension& wait) const {
  if (whole_ || wait.done == 0) wait.check("send_file");
  if (whole_ && wait.done < bytes_) throw end_of_file("send_file", from_->path, wait.done);
  return wait.done;
}

}  // namespace troupe::io
