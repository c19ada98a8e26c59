// The name of a function template has no type, so that no parameter takes it; the same in a
// handler.
// expect: troupe: spawn: it takes a task, or a callable that makes a task, and its arguments
// also: reference to overloaded function
#include <troupe/troupe.hpp>

template <class T>
troupe::task<> work(T) {
  co_return;
}

void use() {
#ifdef CONTROL
  troupe::spawn(work<int>, 5);
#else
  troupe::spawn(work, 5);
#endif
}
