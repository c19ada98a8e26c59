#include "http/h1/output.hpp"

#include <utility>

#include "troupe/base/platform.hpp"

namespace troupe::http {
namespace {

// The memory of the thread's last answer, kept for its next one. An answer therefore finds its
// memory in the processor's caches, and a connection that waits has none.
thread_local std::unique_ptr<char[]> spare;

}  // namespace

TROUPE_NOINLINE void output::rest() noexcept {
  if (capacity_ == first_bytes && spare == nullptr) spare = std::move(data_);
  data_.reset();
  size_ = capacity_ = 0;
}

TROUPE_NOINLINE void output::enlarge(std::size_t bytes) {
  if (capacity_ == 0 && bytes <= first_bytes && spare != nullptr) {
    data_ = std::move(spare);
    capacity_ = first_bytes;
    return;
  }
  std::size_t wanted = capacity_ == 0 ? first_bytes : capacity_ * 2;
  while (wanted - size_ < bytes) wanted *= 2;
  auto larger = std::make_unique_for_overwrite<char[]>(wanted);
  if (size_ != 0) std::memcpy(larger.get(), data_.get(), size_);
  data_ = std::move(larger);
  capacity_ = wanted;
}

}  // namespace troupe::http
