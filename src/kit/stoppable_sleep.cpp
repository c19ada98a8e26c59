#include "troupe/kit/stoppable_sleep.hpp"

#include <string>

#include "troupe/base/error.hpp"

namespace troupe::kit {

void throw_late(const char* task_name) {
  throw timed_out(std::string("troupe: ") + task_name + ": it did not come in time");
}

}  // namespace troupe::kit
