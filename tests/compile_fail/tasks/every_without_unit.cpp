// expect: troupe: every: it takes a time with its unit
#include <troupe/troupe.hpp>

void use(troupe::runtime& rt) {
#ifdef CONTROL
  rt.every(std::chrono::seconds(1), [] {});
#else
  rt.every(1, [] {});
#endif
}
