// expect: troupe: after: it takes a time with its unit
#include <troupe/troupe.hpp>

void use(troupe::runtime& rt) {
#ifdef CONTROL
  rt.after(std::chrono::milliseconds(100), [] {});
#else
  rt.after(100, [] {});
#endif
}
