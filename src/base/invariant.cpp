#include "base/invariant.hpp"

#include <cstdio>
#include <cstdlib>

namespace troupe::base {

void fail_invariant(const char* condition, const char* label, const char* file, int line) noexcept {
  std::fprintf(stderr, "troupe: invariant %s does not hold: %s (%s:%d)\n", label, condition, file,
               line);
  std::abort();
}

}  // namespace troupe::base
