// expect: troupe: future::then: on_value must be callable with the value
// also: no match
#include <string>
#include <troupe/troupe.hpp>

struct Counter {
  long get() const { return 1; }
};

void use(troupe::ref<Counter> to) {
#ifdef CONTROL
  to.ask<&Counter::get>().then([](long) {});
#else
  to.ask<&Counter::get>().then([](std::string) {});
#endif
}
