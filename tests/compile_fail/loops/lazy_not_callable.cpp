// expect: troupe: lazy: it takes what can be called without arguments
#include <troupe/troupe.hpp>

int half(int n) { return n / 2; }

int use() {
#ifdef CONTROL
  return troupe::lazy([] { return half(10); }).get();
#else
  return troupe::lazy(half(10)).get();
#endif
}
