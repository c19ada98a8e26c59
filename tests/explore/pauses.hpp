// pauses: by which planted programs make a mistake rare.
#pragma once

#include <memory>

#include "troupe/troupe.hpp"

namespace planted {

using shared_lock = std::shared_ptr<troupe::mutex>;

inline troupe::task<> pause(int turns) {
  for (int i = 0; i < turns; ++i) co_await troupe::yield();
}

}  // namespace planted
