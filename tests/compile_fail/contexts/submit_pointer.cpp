// A call runs later, on another thread: a pointer could dangle or race.
// expect: troupe: submit: an argument is a pointer, a view, an iterator, a lock or a reference wrapper
#include <troupe/troupe.hpp>

void use(int* number) {
#ifdef CONTROL
  troupe::submit([](int n) { return n; }, *number);
#else
  troupe::submit([](int* n) { return *n; }, number);
#endif
}
