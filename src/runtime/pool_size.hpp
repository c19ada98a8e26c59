// pool_size: how many threads a pool gets when its user does not say.
#pragma once

namespace troupe {

// CPUs that this process may use: the affinity mask, cut by the cgroup's quota (v2, then v1), rounded up.
// 3 where neither can be read.
unsigned usable_cpus();

}  // namespace troupe
