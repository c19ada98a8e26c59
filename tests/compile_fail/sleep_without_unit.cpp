// expect: troupe: sleep_for: it takes a time with its unit
// also: no matching member function
#include <troupe/troupe.hpp>

troupe::task<> use() {
#ifdef CONTROL
  co_await troupe::sleep_for(std::chrono::milliseconds(100));
#else
  co_await troupe::sleep_for(100);
#endif
  co_return;
}
