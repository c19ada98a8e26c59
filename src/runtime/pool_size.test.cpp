#include "runtime/pool_size.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace troupe {
namespace {

// A folder with files like the kernel's.
class pool_size : public testing::Test {
 protected:
  pool_size() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::path(testing::TempDir()) /
            (std::string("troupe_pool_size_") + test->name());
    std::filesystem::remove_all(root_);
  }
  ~pool_size() override { std::filesystem::remove_all(root_); }
  void file(const std::string& path, const std::string& text) {
    const auto full = root_ / path.substr(1);
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  double cpus() const { return cgroup_cpus(root_.string()); }
  std::filesystem::path root_;
};

TEST_F(pool_size, no_cgroup_means_no_quota) {
  EXPECT_EQ(cpus(), 0);
  file("/proc/self/cgroup", "0::/\n");
  EXPECT_EQ(cpus(), 0);
}

TEST_F(pool_size, version_2_quota_of_the_processs_own_group) {
  file("/proc/self/cgroup", "0::/user.slice/app\n");
  file("/sys/fs/cgroup/user.slice/app/cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(cpus(), 1.5);
}

TEST_F(pool_size, max_means_no_quota) {
  file("/proc/self/cgroup", "0::/app\n");
  file("/sys/fs/cgroup/app/cpu.max", "max 100000\n");
  EXPECT_EQ(cpus(), 0);
}

TEST_F(pool_size, the_tightest_quota_on_the_way_to_the_root_counts) {
  file("/proc/self/cgroup", "0::/a/b/c\n");
  file("/sys/fs/cgroup/a/b/c/cpu.max", "400000 100000\n");
  file("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  file("/sys/fs/cgroup/a/cpu.max", "200000 100000\n");
  file("/sys/fs/cgroup/cpu.max", "800000 100000\n");
  EXPECT_DOUBLE_EQ(cpus(), 2);
}

TEST_F(pool_size, a_containers_root_has_the_quota) {
  file("/proc/self/cgroup", "0::/\n");
  file("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(cpus(), 0.5);
}

TEST_F(pool_size, version_1_quota) {
  file("/proc/self/cgroup", "5:memory:/app\n4:cpu,cpuacct:/app\n");
  file("/sys/fs/cgroup/cpu/app/cpu.cfs_quota_us", "250000\n");
  file("/sys/fs/cgroup/cpu/app/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(cpus(), 2.5);
  file("/sys/fs/cgroup/cpu/app/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cpus(), 0);
}

TEST_F(pool_size, other_controllers_of_version_1_do_not_count) {
  file("/proc/self/cgroup", "3:cpuset:/set\n2:cpuacct:/set\n");
  file("/sys/fs/cgroup/cpu/set/cpu.cfs_quota_us", "100000\n");
  file("/sys/fs/cgroup/cpu/set/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpus(), 0);
}

TEST_F(pool_size, nonsense_means_no_quota) {
  file("/proc/self/cgroup", "nonsense\n0:only one colon\n\n0::/app\n");
  file("/sys/fs/cgroup/app/cpu.max", "0 0\n");
  EXPECT_EQ(cpus(), 0);
  file("/sys/fs/cgroup/app/cpu.max", "many\n");
  EXPECT_EQ(cpus(), 0);
}

TEST_F(pool_size, a_part_of_a_cpu_is_rounded_up) {
  EXPECT_EQ(cpus_for(8, 0), 8u);
  EXPECT_EQ(cpus_for(8, 0.1), 1u);
  EXPECT_EQ(cpus_for(8, 1), 1u);
  EXPECT_EQ(cpus_for(8, 1.5), 2u);
  EXPECT_EQ(cpus_for(8, 7.5), 8u);
  EXPECT_EQ(cpus_for(8, 20), 8u);
  EXPECT_EQ(cpus_for(8, 1e30), 8u);
  EXPECT_EQ(cpus_for(0, 2), 3u) << "unknown";
}

TEST_F(pool_size, this_machine_has_at_least_one) { EXPECT_GE(usable_cpus(), 1u); }

}  // namespace
}  // namespace troupe
