// A handle into a context stays where it was made: a copy could outlive the memory.
// expect: in_context
#include <troupe/troupe.hpp>

int use(troupe::context& work) {
  auto number = work.make<int>(1);
#ifdef CONTROL
  return *number;
#else
  auto copy = number;
  return *copy;
#endif
}
