// The callback takes what the call returns.
// expect: troupe: submit: then: the callback must be callable with the result of the call
#include <string>
#include <troupe/troupe.hpp>

void use() {
#ifdef CONTROL
  troupe::submit([] { return 1; }).then([](int) {});
#else
  troupe::submit([] { return 1; }).then([](std::string) {});
#endif
}
