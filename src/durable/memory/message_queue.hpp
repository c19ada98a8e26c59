// message_queue: the messages that wait for one actor, the oldest first. Each is linked through a
// member of its own: adding one neither allocates nor fails, and an empty queue is two words.
//
// Lock: the engine's mutex is held in each function.
#pragma once

#include <cstddef>
#include <iterator>
#include <utility>

#include "base/invariant.hpp"
#include "durable/memory/record.hpp"

namespace troupe::durable::parts {

class message_queue {
 public:
  class iterator {
   public:
    using value_type = record_ref;
    using difference_type = std::ptrdiff_t;

    iterator() = default;
    explicit iterator(const record_ref& at) noexcept : at_(&at) {}
    const record_ref& operator*() const noexcept { return *at_; }
    iterator& operator++() noexcept {
      at_ = &(*at_)->next_waiting;
      return *this;
    }
    iterator operator++(int) noexcept {
      return std::exchange(*this, iterator((*at_)->next_waiting));
    }
    bool operator==(const iterator& other) const noexcept = default;
    // The end.
    bool operator==(std::default_sentinel_t) const noexcept { return *at_ == nullptr; }

   private:
    const record_ref* at_ = nullptr;
  };

  message_queue() = default;
  message_queue(message_queue&& from) noexcept
      : first_(std::move(from.first_)), last_(std::exchange(from.last_, nullptr)) {}
  message_queue& operator=(message_queue&& from) noexcept {
    clear();
    first_ = std::move(from.first_);
    last_ = std::exchange(from.last_, nullptr);
    return *this;
  }
  ~message_queue() { clear(); }

  bool empty() const noexcept { return first_ == nullptr; }
  iterator begin() const noexcept { return iterator(first_); }
  static std::default_sentinel_t end() noexcept { return {}; }

  void push_back(const record_ref& message) noexcept {
    check_enters(*message);
    (last_ == nullptr ? first_ : last_->next_waiting) = message;
    last_ = message.get();
  }
  void push_front(const record_ref& message) noexcept {
    check_enters(*message);
    if (last_ == nullptr) last_ = message.get();
    message->next_waiting = std::exchange(first_, message);
  }
  // Null: it is empty.
  record_ref pop_front() noexcept {
    record_ref taken = std::move(first_);
    if (taken == nullptr) return taken;
    first_ = std::move(taken->next_waiting);
    if (first_ == nullptr) last_ = nullptr;
    return taken;
  }
  // False: it is not here.
  bool remove(const record_ref& message) noexcept {
    message_queue others;
    bool is_found = false;
    while (record_ref next = pop_front()) {
      if (next == message) {
        is_found = true;
      } else {
        others.push_back(next);
      }
    }
    *this = std::move(others);
    return is_found;
  }
  // One by one: a long chain would end itself by as many calls within each other.
  void clear() noexcept {
    while (pop_front() != nullptr) {
    }
  }

 private:
  void check_enters([[maybe_unused]] const record& message) const noexcept {
    TROUPE_INVARIANT(message.next_waiting == nullptr && &message != last_, "M2");
  }

  record_ref first_;
  record* last_ = nullptr;
};

}  // namespace troupe::durable::parts
