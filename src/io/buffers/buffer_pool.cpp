#include "io/buffers/buffer_pool.hpp"

#include <new>

namespace troupe {

void io_buffer::give_back() noexcept {
  from_->give(std::exchange(data_, nullptr));
  size_ = 0;
}

namespace io {

std::byte* buffer_pool::make() noexcept {
  return static_cast<std::byte*>(::operator new(buffer_bytes, std::nothrow));
}
void buffer_pool::destroy(std::byte* data) noexcept { ::operator delete(data); }

buffer_pool::~buffer_pool() {
  while (free_one* one = free_) {
    free_ = one->next;
    destroy(reinterpret_cast<std::byte*>(one));
  }
}

std::byte* buffer_pool::take() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (free_one* one = free_) {
      free_ = one->next;
      --kept_;
      count(1);
      return reinterpret_cast<std::byte*>(one);
    }
  }
  std::byte* const made = make();
  if (made == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  count(1);
  return made;
}

void buffer_pool::give(std::byte* data) noexcept {
  bool kept = false, last = false;
  {
    const std::lock_guard lock(mutex_);
    count(-1);
    last = let_go_ && leased() == 0;
    kept = keep(data);
    if (!kept && kept_ < kept_max) {
      ++kept_;
      free_ = ::new (data) free_one{free_};
      kept = true;
    }
  }
  if (!kept) destroy(data);
  if (last) delete this;
}

void buffer_pool::let_go() noexcept {
  bool last = false;
  {
    const std::lock_guard lock(mutex_);
    let_go_ = true;
    last = leased() == 0;
  }
  if (last) delete this;
}

}  // namespace io
}  // namespace troupe
