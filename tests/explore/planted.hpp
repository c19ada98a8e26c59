// planted: programs that are right in nearly all schedules, each with a mistake that users make.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "troupe/runtime/explore.hpp"

namespace planted {

struct bug {
  const char* name;
  void (*body)(troupe::explored_run&);
  const char* says;  // a part of the failure
};

// The eleven of them.
const std::vector<bug>& bugs();

}  // namespace planted
