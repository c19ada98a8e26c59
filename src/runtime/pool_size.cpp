#include "runtime/pool_size.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

namespace troupe {
namespace {

constexpr unsigned unknown_cpus = 3;

unsigned affinity_cpus() {
  // 8192 CPUs: more than any kernel is built for.
  constexpr int cpus_max = 8192;
  cpu_set_t* set = CPU_ALLOC(cpus_max);
  if (set == nullptr) return 0;
  const std::size_t bytes = CPU_ALLOC_SIZE(cpus_max);
  const int cpus = ::sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
  CPU_FREE(set);
  return static_cast<unsigned>(cpus);
}

// The quota of one cgroup folder in CPUs; 0 when it has none.
double quota_of(const std::string& folder) {
  double quota = 0, period = 0;
  if (std::ifstream v2(folder + "/cpu.max"); v2 >> quota >> period && period > 0)
    return quota / period;
  std::ifstream v1_quota(folder + "/cpu.cfs_quota_us"), v1_period(folder + "/cpu.cfs_period_us");
  if (v1_quota >> quota && v1_period >> period && quota > 0 && period > 0) return quota / period;
  return 0;
}

}  // namespace

double cgroup_cpus(const std::string& file_system) {
  double tightest = 0;
  std::ifstream groups(file_system + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (!v2 && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    const std::string root = file_system + (v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu");
    for (std::string path = line.substr(second + 1);; path.resize(path.rfind('/'))) {
      const double quota = quota_of(root + path);
      if (quota > 0 && (tightest == 0 || quota < tightest)) tightest = quota;
      if (path.empty() || path.rfind('/') == std::string::npos) break;
    }
  }
  return tightest;
}

unsigned cpus_for(unsigned allowed, double quota) {
  if (allowed == 0) return unknown_cpus;
  if (quota <= 0 || quota >= allowed) return allowed;
  return std::max(static_cast<unsigned>(std::ceil(quota)), 1u);
}

unsigned usable_cpus() { return cpus_for(affinity_cpus(), cgroup_cpus("")); }

}  // namespace troupe
