// on_pool: runs a work on the pool, by a task that wants it.
#pragma once

#include <utility>

#include "troupe/troupe.hpp"

namespace troupe::test {

template <class T>
T on_pool(runtime& rt, work<T> wanted) {
  auto wants = [](work<T> given) -> task<T> { co_return co_await std::move(given); };
  auto result = rt.spawn(wants(std::move(wanted)));
  rt.run();
  return result.get();
}

}  // namespace troupe::test
