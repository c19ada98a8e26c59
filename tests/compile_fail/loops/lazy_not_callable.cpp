// expect: troupe: lazy: it takes a callable without parameters
#include <troupe/troupe.hpp>

int half(int n) { return n / 2; }

int use() {
#ifdef CONTROL
  return troupe::lazy([] { return half(10); }).get();
#else
  return troupe::lazy(half(10)).get();
#endif
}
