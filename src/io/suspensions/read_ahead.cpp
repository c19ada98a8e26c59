#include "troupe/io/read_ahead.hpp"

#include <memory>
#include <mutex>
#include <new>

#include "io/reactor/reactor.hpp"

namespace troupe::io {

bool read_ahead::must_wait(const stream& from) noexcept {
  slot* const at = from.descriptor_.bound();
  if (at == nullptr) return false;
  const std::lock_guard lock(at->mutex);
  return at->reads_ahead;
}

void read_ahead::see(const stream& from) noexcept {
  at_ = from.descriptor_.bound();
  if (at_ != nullptr) generation_ = at_->generation;
}

void read_ahead::insert(std::string_view bytes) {
  if (at_ == nullptr || bytes.empty()) return;
  const std::lock_guard lock(at_->mutex);
  if (at_->generation != generation_ || at_->fd < 0) return;  // it was closed
  if (at_->kept == nullptr) at_->kept = std::make_unique<kept_input>();
  at_->kept->insert(held_, bytes);
}

void read_ahead::hold(std::string_view bytes) {
  insert(bytes);
  held_ += bytes.size();
}

void read_ahead::take() noexcept {
  if (held_ == 0) return;
  const std::lock_guard lock(at_->mutex);
  const bool is_open = at_->generation == generation_ && at_->fd >= 0;
  if (is_open && at_->kept != nullptr) {
    at_->kept->drop_first(held_);
    if (at_->kept->empty()) at_->kept.reset();
  }
  held_ = 0;
}

void read_ahead::give_back(std::string_view bytes) noexcept {
  try {
    insert(bytes);
  } catch (const std::bad_alloc&) {  // as operation_suspension::give_back
  }
}

}  // namespace troupe::io
