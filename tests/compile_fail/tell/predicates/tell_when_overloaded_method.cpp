// To tell an overloaded method with a predicate, name its type, too.
// expect: troupe: this names several methods, for it is overloaded or a template: choose one by its type
// also: no matching
// also: unable to deduce
// also: type/value mismatch
#include <troupe/troupe.hpp>

#include "../../../support/overloaded_methods.hpp"

void use(troupe::ref<Sum> to) {
#ifdef CONTROL
  to.tell_when<static_cast<long (Sum::*)(int)>(&Sum::add)>(
      [](const Sum& self) { return self.total > 0; }, 5);
#else
  to.tell_when<&Sum::add>([](const Sum& self) { return self.total > 0; }, 5);
#endif
}
