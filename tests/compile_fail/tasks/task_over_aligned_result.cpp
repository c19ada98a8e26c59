// The runtime aligns a result to 16 bytes. A type that needs more must be behind a pointer.
// expect: troupe: the result of a task, a promise or an ask is aligned to 16 bytes; put an over-aligned result into a std::unique_ptr
#include <memory>

#include "troupe/troupe.hpp"

struct alignas(32) row {
  float values[8];
};

#ifdef CONTROL
using result = std::unique_ptr<row>;
#else
using result = row;
#endif

troupe::task<result> make() { co_return result{}; }
