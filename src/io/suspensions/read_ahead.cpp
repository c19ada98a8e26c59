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

// A stream that was closed or moved since the read began has no slot any more: the held bytes lie
// in the slot that it had.
void read_ahead::see(const stream& from) {
  slot* const at = from.descriptor_.bound();
  if (at == nullptr || (at == at_ && at->generation == generation_)) return;
  keeps_ = at->owner->shared_from_this();
  at_ = at;
  generation_ = at->generation;
  held_ = 0;
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
  if (at_ != nullptr) held_ += bytes.size();
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
