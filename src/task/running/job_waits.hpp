// job_waits: the functions by which a search for deadlocks reads the waits of the layer `jobs`.
#pragma once

#include <cstdint>

namespace troupe::tasks {

struct job_waits {
  // The thread that runs the job, or null when it is not running. `job` is alive.
  const void* (*runner_of)(const void* job) noexcept;
  // Calls `look` for each thread that waits for a job which another thread runs. `seen_in` belongs
  // to that very wait, and is 0 when the wait begins (D1 in src/actor/waits/deadlock_search.hpp).
  void (*for_each)(void* context, void (*look)(void* context, const void* thread,
                                               const void* runner, std::uint32_t& seen_in));
};

}  // namespace troupe::tasks
