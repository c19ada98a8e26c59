// A reader's access is constant. To write, take a writer's access.
// expect: assign
#include <troupe/troupe.hpp>

void use(troupe::guarded<int> number) {
#ifdef CONTROL
  **number.try_write() = 2;
#else
  **number.try_read() = 2;
#endif
}
