#include "troupe/sync/select.hpp"

#include "troupe/base/error.hpp"

namespace troupe::sync {

void check_cases(std::size_t count) {
  if (count == 0) throw usage_error("troupe: select: there is no case; give it at least one");
}

}  // namespace troupe::sync
