// is_listed: whether an object is in an intrusive list, as far as its neighbours show. For the
// assertions of walks that pause; the object's memory must be valid.
#pragma once

namespace troupe::base {

template <class List, class T>
bool is_listed(const List& list, const T& object) noexcept {
  const T* const before = List::previous(object);
  const T* const after = List::next(object);
  return (before == nullptr ? list.first() : List::next(*before)) == &object &&
         (after == nullptr ? list.last() : List::previous(*after)) == &object;
}

}  // namespace troupe::base
