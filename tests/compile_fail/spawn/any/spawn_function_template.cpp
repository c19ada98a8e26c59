// As an overloaded function; also in a handler.
// expect: troupe: spawn: it takes a task, what makes one and its arguments
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
