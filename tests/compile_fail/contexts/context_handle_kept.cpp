// A handle into a context cannot be assigned to one that lives longer. A persisted value may be
// kept.
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
