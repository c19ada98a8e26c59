// expect: troupe: co_return: a task<T> gives a T, which cannot be made of this value
#include <troupe/troupe.hpp>

troupe::task<int> use() {
#ifdef CONTROL
  co_return 5;
#else
  co_return "five";
#endif
}
