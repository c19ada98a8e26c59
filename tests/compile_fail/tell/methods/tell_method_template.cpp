// The name of a method template has no type, so that it does not say which method is sent.
// expect: troupe: this names several methods, for it is overloaded or a template: choose one by its type
// also: no matching
// also: unable to deduce
// also: type/value mismatch
#include <troupe/troupe.hpp>

#include "../../../support/overloaded_methods.hpp"

void use(troupe::ref<Sum> to) {
#ifdef CONTROL
  to.tell<&Sum::add_any<int>>(5);
  to.tell<static_cast<long (Sum::*)(int)>(&Sum::add_any)>(5);
#else
  to.tell<&Sum::add_any>(5);
#endif
}
