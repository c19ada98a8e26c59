// Nor does a handle that lives longer take it over; what was persisted may be kept.
// expect: operator=
#include <troupe/troupe.hpp>

void use(troupe::in_context<int>& longer, troupe::persisted<int>& kept, troupe::context& work) {
  auto number = work.make<int>(1);
#ifdef CONTROL
  static_cast<void>(longer);
  kept = troupe::persist(number);
#else
  static_cast<void>(kept);
  longer = number;
#endif
}
