// A task runs later, on another thread: a pointer could dangle or race.
// expect: troupe: spawn: the callable or an argument is a pointer
// expect: troupe::unchecked
#include <troupe/troupe.hpp>

troupe::task<> count_to(int* sum) {
  *sum = 1;
  co_return;
}

void use(troupe::runtime& rt, int& sum) {
#ifdef CONTROL
  rt.spawn(count_to, troupe::unchecked<int*>{&sum});
#else
  rt.spawn(count_to, &sum);
#endif
}
