// intrusive_queue: objects that leave in the order in which they entered, each linked through one
// pointer of its own. No operation allocates or fails.
//
// Plain data: its owner decides which lock or thread guards it, and keeps the objects alive while
// they are in the queue. Where objects leave from the middle, use intrusive_list. For the library's
// own use.
#pragma once

#include <cstddef>
#include <utility>

namespace troupe::base {

template <class T, T* T::*Next>
class intrusive_queue {
 public:
  constexpr intrusive_queue() = default;
  intrusive_queue(intrusive_queue&& from) noexcept
      : first_(std::exchange(from.first_, nullptr)),
        last_(from.last_),
        count_(std::exchange(from.count_, 0)) {}
  intrusive_queue& operator=(intrusive_queue&&) = delete;

  bool empty() const noexcept { return first_ == nullptr; }
  std::size_t count() const noexcept { return count_; }
  T* first() const noexcept { return first_; }  // null if the queue is empty
  static T* next(const T& element) noexcept { return element.*Next; }

  void push(T& element) noexcept {
    element.*Next = nullptr;
    (first_ == nullptr ? first_ : last_->*Next) = &element;
    last_ = &element;
    ++count_;
  }
  // Takes the oldest object; null if the queue is empty.
  T* pop() noexcept {
    T* const element = first_;
    if (element == nullptr) return nullptr;
    first_ = element->*Next;
    --count_;
    return element;
  }
  // The object with exactly `older` older ones in the queue. Cost: a step for each of these.
  const T& at(std::size_t older) const noexcept {
    const T* found = first_;
    for (; older != 0; --older) found = found->*Next;
    return *found;
  }
  // Takes the object with exactly `older` older ones in the queue. Cost: as at().
  T& take(std::size_t older) noexcept {
    if (older == 0) return *pop();
    T* before = first_;
    for (; older != 1; --older) before = before->*Next;
    T& element = *(before->*Next);
    before->*Next = element.*Next;
    if (last_ == &element) last_ = before;
    --count_;
    return element;
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;  // means nothing while the queue is empty
  std::size_t count_ = 0;
};

}  // namespace troupe::base
