// walked_list: an intrusive list through which several walks can go in pieces. Between two pieces
// the caller unlocks, and other threads add and remove.
//
// Plain data: the caller's lock guards the list and its walks. Where one lock guards only the list,
// use watched_list, which brings its own.
// Invariants
//   L1  `next_` of a walk is null or an object in the list: the removal of that object moves it on.
#pragma once

#include <cstddef>
#include <utility>

#include "base/invariant.hpp"
#include "base/walks/is_listed.hpp"
#include "troupe/base/intrusive_list.hpp"

namespace troupe::base {

template <class T, auto Link>
class walked_list {
 public:
  using list = intrusive_list<T, Link>;
  // The number of objects in one piece of a walk, at most.
  static constexpr std::size_t piece_max = 64;

  // Its use lies between begin() and end().
  class walk {
   public:
    walk() = default;
    walk(const walk&) = delete;
    walk& operator=(const walk&) = delete;

   private:
    friend class walked_list;
    T* next_ = nullptr;  // the next object to be looked at
    walk* other_ = nullptr;
  };

  bool empty() const noexcept { return all_.empty(); }
  T* last() const noexcept { return all_.last(); }
  // Whether an object is here, as far as its neighbours show; its memory must be valid.
  bool contains(const T& object) const noexcept { return is_listed(all_, object); }
  void push_front(T& element) noexcept { all_.push_front(element); }
  void insert_after(T* before, T& element) noexcept { all_.insert_after(before, element); }
  void remove(T& element) noexcept {
    for (walk* at = walks_; at != nullptr; at = at->other_) {
      if (at->next_ == &element) at->next_ = list::next(element);  // L1
    }
    all_.remove(element);
  }
  // Takes all objects; then no walk finds any.
  list take_all() noexcept {
    for (walk* at = walks_; at != nullptr; at = at->other_) at->next_ = nullptr;
    return std::move(all_);
  }

  void begin(walk& at) noexcept {
    at.next_ = all_.first();
    at.other_ = std::exchange(walks_, &at);
  }
  void end(walk& at) noexcept {
    walk** link = &walks_;
    while (*link != &at) link = &(*link)->other_;
    *link = at.other_;
  }

  // Calls `look` with the next objects, piece_max of them at most. Returns false when `look` has
  // returned false or there are no more. The walk finds each object that is in the list from its
  // beginning to its end, and none twice that stays in the list; an object that comes meanwhile is
  // found if it comes behind the place of the walk. `look` must not change this list.
  template <class Look>
  bool next_piece(walk& at, Look&& look) {
    for (std::size_t i = 0; at.next_ != nullptr && i < piece_max; ++i) {
      T& element = *at.next_;
      TROUPE_INVARIANT(is_listed(all_, element), "L1");
      at.next_ = list::next(element);
      if (!look(element)) return false;
    }
    return at.next_ != nullptr;
  }

 private:
  list all_;
  walk* walks_ = nullptr;
};

}  // namespace troupe::base
