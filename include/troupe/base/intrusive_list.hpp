// intrusive_list: objects in a sequence, each linked through a member of its own. Therefore no
// operation allocates or fails, and an object leaves the list in constant time, wherever it lies.
//
// Plain data: its owner decides which lock or thread guards it, and keeps the objects alive while
// they are in the list. The list does not know whether an object is in it. For the library's own
// use.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <type_traits>
#include <utility>

namespace troupe::tasks {
struct debugger_view;
}

namespace troupe::base {

// Belongs to the list for as long as the object is in it, and means nothing afterwards.
template <class T>
struct list_link {
  T* previous = nullptr;
  T* next = nullptr;
};

// `Link` leads to an object's list_link<T>: a pointer to the member, or to a function of the
// object.
template <class T, auto Link>
class intrusive_list {
 public:
  constexpr intrusive_list() = default;
  intrusive_list(intrusive_list&& from) noexcept
      : first_(std::exchange(from.first_, nullptr)), last_(std::exchange(from.last_, nullptr)) {}
  intrusive_list& operator=(intrusive_list&&) = delete;

  bool empty() const noexcept { return first_ == nullptr; }
  // These four return null where there is no such object.
  T* first() const noexcept { return first_; }
  T* last() const noexcept { return last_; }
  static T* next(const T& element) noexcept { return link(const_cast<T&>(element)).next; }
  static T* previous(const T& element) noexcept { return link(const_cast<T&>(element)).previous; }

  void push_front(T& element) noexcept {
    link(element) = {nullptr, first_};
    (first_ == nullptr ? last_ : link(*first_).previous) = &element;
    first_ = &element;
  }
  void push_back(T& element) noexcept {
    link(element) = {last_, nullptr};
    (last_ == nullptr ? first_ : link(*last_).next) = &element;
    last_ = &element;
  }
  // Puts `element` right after `before`, or in front of all others if that is null.
  void insert_after(T* before, T& element) noexcept {
    T* const after = before == nullptr ? first_ : link(*before).next;
    link(element) = {before, after};
    (before == nullptr ? first_ : link(*before).next) = &element;
    (after == nullptr ? last_ : link(*after).previous) = &element;
  }
  void remove(T& element) noexcept {
    const list_link<T> at = link(element);
    (at.previous == nullptr ? first_ : link(*at.previous).next) = at.next;
    (at.next == nullptr ? last_ : link(*at.next).previous) = at.previous;
  }
  // Takes the first object; null if the list is empty.
  T* pop_front() noexcept {
    T* const element = first_;
    if (element == nullptr) return nullptr;
    first_ = link(*element).next;
    (first_ == nullptr ? last_ : link(*first_).previous) = nullptr;
    return element;
  }
  // Takes all objects of `from`, in their order, behind those that are here.
  void splice_back(intrusive_list&& from) noexcept {
    if (from.empty()) return;
    link(*from.first_).previous = last_;
    (last_ == nullptr ? first_ : link(*last_).next) = from.first_;
    last_ = from.last_;
    from.first_ = from.last_ = nullptr;
  }

  // For a loop over all objects, first to last, that leaves the object which it looks at in the
  // list.
  class iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    explicit iterator(T* at) noexcept : at_(at) {}
    T& operator*() const noexcept { return *at_; }
    iterator& operator++() noexcept {
      at_ = next(*at_);
      return *this;
    }
    iterator operator++(int) noexcept { return iterator(std::exchange(at_, next(*at_))); }
    bool operator==(const iterator&) const = default;

   private:
    T* at_ = nullptr;
  };
  iterator begin() const noexcept { return iterator(first_); }
  iterator end() const noexcept { return iterator(nullptr); }

 private:
  friend struct tasks::debugger_view;  // src/runtime/debugger_table.cpp
  static list_link<T>& link(T& element) noexcept {
    if constexpr (std::is_member_object_pointer_v<decltype(Link)>) {
      return element.*Link;
    } else {
      return Link(element);
    }
  }

  T* first_ = nullptr;
  T* last_ = nullptr;
};

}  // namespace troupe::base
