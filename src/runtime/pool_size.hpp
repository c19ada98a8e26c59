// pool_size: the default number of a pool's threads.
#pragma once

#include <string>

namespace troupe {

// The number of CPUs that this process may use: the affinity mask, limited by the cgroup's quota
// (v2, then v1), rounded up. 3 where neither can be read.
unsigned usable_cpus();

// The parts of that. `file_system` is a folder in front of /proc and /sys, for tests.
// The tightest quota, in CPUs, on the path from this process's cgroup to the root; 0 when there is
// none.
double cgroup_cpus(const std::string& file_system);
// `allowed` 0: unknown.
unsigned cpus_for(unsigned allowed, double quota);

}  // namespace troupe
