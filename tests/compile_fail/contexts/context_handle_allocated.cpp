// A handle into a context cannot be allocated on the heap: it could outlive the memory.
// expect: in_context
#include <troupe/troupe.hpp>

void use(troupe::context& work) {
#ifdef CONTROL
  auto number = work.make<int>(1);
  static_cast<void>(number);
#else
  auto* number = new troupe::in_context<int>(work.make<int>(1));
  static_cast<void>(number);
#endif
}
