// ring: values in the order in which they came, in one block of memory. For the library's own use.
#pragma once

#include "troupe/base/language.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace troupe::sync {

// Thread: one at a time. A move of T must not throw.
template <class T>
class ring {
  static_assert(std::is_nothrow_move_constructible_v<T>);

 public:
  explicit ring(std::size_t slots) : first_(allocate(slots)), slots_(slots) {}
  ring(ring&& other) noexcept
      : first_(std::exchange(other.first_, nullptr)),
        slots_(std::exchange(other.slots_, 0)),
        head_(std::exchange(other.head_, 0)),
        count_(std::exchange(other.count_, 0)) {}
  ring& operator=(ring&&) = delete;
  ~ring() {
    while (count_ != 0) drop();
    if (first_ != nullptr) std::allocator<T>().deallocate(first_, slots_);
  }

  std::size_t size() const noexcept { return count_; }
  std::size_t slots() const noexcept { return slots_; }
  bool empty() const noexcept { return count_ == 0; }
  bool full() const noexcept { return count_ == slots_; }

  // There is an empty slot.
  void push(T&& value) noexcept {
    std::construct_at(first_ + wrapped(head_ + count_), std::move(value));
    ++count_;
  }
  void push_front(T&& value) noexcept {
    const std::size_t before = (head_ == 0 ? slots_ : head_) - 1;
    std::construct_at(first_ + before, std::move(value));
    head_ = before;
    ++count_;
  }
  // The ring is not empty.
  T& front() noexcept { return first_[head_]; }
  void drop() noexcept {
    std::destroy_at(first_ + head_);
    head_ = wrapped(head_ + 1);
    --count_;
  }
  T& operator[](std::size_t from_front) noexcept { return first_[wrapped(head_ + from_front)]; }

  // Moves the values to a larger block. Throws std::bad_alloc; then nothing has changed.
  void grow() {
    ring larger(std::max<std::size_t>(2 * slots_, 16));
    for (; count_ != 0; drop()) larger.push(std::move(front()));
    std::swap(first_, larger.first_);
    std::swap(slots_, larger.slots_);
    std::swap(count_, larger.count_);
    head_ = 0;
    larger.head_ = 0;
  }
  // Frees the block if the ring is empty and the block is larger than `slots_max` slots.
  void shrink(std::size_t slots_max) noexcept {
    if (count_ != 0 || slots_ <= slots_max) return;
    std::allocator<T>().deallocate(std::exchange(first_, nullptr), std::exchange(slots_, 0));
    head_ = 0;
  }

 private:
  static T* allocate(std::size_t slots) {
    return slots == 0 ? nullptr : std::allocator<T>().allocate(slots);
  }
  std::size_t wrapped(std::size_t at) const noexcept { return at < slots_ ? at : at - slots_; }

  T* first_;
  std::size_t slots_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
};

}  // namespace troupe::sync
