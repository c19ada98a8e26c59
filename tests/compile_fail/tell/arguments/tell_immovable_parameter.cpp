// A parameter by value is moved out of the message.
// expect: troupe: tell: an argument or parameter can be neither copied nor moved
#include <atomic>
#include <troupe/troupe.hpp>

struct Counter {
  void set(std::atomic<int> to) { n = to; }
  void set_plain(int to) { n = to; }
  int n = 0;
};

void use(troupe::ref<Counter> to) {
#ifdef CONTROL
  to.tell<&Counter::set_plain>(5);
#else
  to.tell<&Counter::set>(5);
#endif
}
