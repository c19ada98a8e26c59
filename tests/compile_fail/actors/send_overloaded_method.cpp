// To send an overloaded method, name its type.
// expect: troupe: this names several methods, for it is overloaded or a template: choose one by its type
// also: no matching
// also: unable to deduce
// also: type/value mismatch
#include <troupe/troupe.hpp>

#include "../../support/overloaded_methods.hpp"

troupe::task<> use(troupe::ref<Sum> to) {
#ifdef CONTROL
  co_await to.send<static_cast<long (Sum::*)(int)>(&Sum::add)>(5);
#else
  co_await to.send<&Sum::add>(5);
#endif
  co_return;
}
