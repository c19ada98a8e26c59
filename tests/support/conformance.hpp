// What all tests of behaviour share: the settings that they run under, and the command that repeats
// a test.
//
// A test of the conformance suite runs once for each setting: a policy with a number of workers, or
// the simulated policy with a seed. Where TROUPE_POLICY forces a policy, the settings of the others
// are skipped.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "simulation/seeds.hpp"
#include "troupe/troupe.hpp"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define TROUPE_TEST_SLOW 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define TROUPE_TEST_SLOW 1
#endif
#endif
#if !defined(TROUPE_TEST_SLOW)
#define TROUPE_TEST_SLOW 0
#endif

namespace troupe::test {

// Sanitizers make programs five to twenty times slower, so tests do that much less.
inline constexpr bool slow = TROUPE_TEST_SLOW != 0;
constexpr int fewer(int count, int divisor = 4) {
  return slow ? (count + divisor - 1) / divisor : count;
}

struct setting {
  troupe::policy policy = troupe::policy::work_stealing;
  unsigned workers = 2;
  std::uint64_t seed = 1;
};

// Whether handlers run in the thread that calls run().
constexpr bool runs_inside_run(troupe::policy policy) {
  return policy == troupe::policy::simulated || policy == troupe::policy::one_thread;
}

inline const char* name_of(troupe::policy policy) {
  switch (policy) {
    case troupe::policy::work_stealing:
      return "work_stealing";
    case troupe::policy::shared_queue:
      return "shared_queue";
    case troupe::policy::simulated:
      return "simulated";
    case troupe::policy::one_thread:
      return "one_thread";
  }
  return "unknown";
}

inline std::string name_of(const setting& chosen) {
  if (chosen.policy == troupe::policy::simulated)
    return "simulated_seed_" + std::to_string(chosen.seed);
  return std::string(name_of(chosen.policy)) + "_" + std::to_string(chosen.workers);
}

inline std::ostream& operator<<(std::ostream& out, const setting& chosen) {
  return out << name_of(chosen);
}

// All policies, with 1, 2, 3 and 8 workers or with several seeds. Under sanitizers there are fewer
// settings, so that `./test` stays short. Those left out differ only in the number of threads and
// in the choices of a seed.
inline std::vector<setting> all_settings() {
  std::vector<setting> all;
  if (slow) {
    for (const unsigned workers : {1u, 2u, 8u})
      all.push_back({troupe::policy::work_stealing, workers, 1});
    all.push_back({troupe::policy::shared_queue, 2, 1});
    all.push_back({troupe::policy::simulated, 1, 1});
    all.push_back({troupe::policy::one_thread, 1, 1});
    return all;
  }
  for (const troupe::policy policy :
       {troupe::policy::work_stealing, troupe::policy::shared_queue}) {
    for (const unsigned workers : {1u, 2u, 3u, 8u}) all.push_back({policy, workers, 1});
  }
  for (const std::uint64_t seed : {1u, 2u, 3u}) all.push_back({troupe::policy::simulated, 1, seed});
  all.push_back({troupe::policy::one_thread, 1, 1});
  return all;
}

// For behaviour that does not depend on the number of workers.
inline std::vector<setting> each_policy() {
  return {{troupe::policy::work_stealing, 2, 1},
          {troupe::policy::shared_queue, 2, 1},
          {troupe::policy::simulated, 1, 1},
          {troupe::policy::one_thread, 1, 1}};
}

// For behaviour of real threads.
inline std::vector<setting> threaded_settings() {
  std::vector<setting> all = all_settings();
  std::erase_if(all, [](const setting& kept) { return runs_inside_run(kept.policy); });
  return all;
}

// The kinds of threads that an actor can run on.
using thread_kind = std::variant<spawn_options, on_thread>;
inline std::vector<thread_kind> thread_kinds(const std::string& thread,
                                             spawn_options options = {}) {
  return {options, pinned(thread, options), on_main(options)};
}

// Spawns with what all these kinds support: arguments that may travel to another thread.
template <class T, class... Args>
ref<T> spawn_on(runtime& rt, const thread_kind& where, Args&&... args) {
  return std::visit(
      [&](const auto& there) { return rt.spawn<T>(there, std::forward<Args>(args)...); }, where);
}

// Sets an environment variable for a scope. A null value unsets it.
class scoped_environment {
 public:
  scoped_environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before, was_set_ = true;
    set(value);
  }
  ~scoped_environment() { set(was_set_ ? before_.c_str() : nullptr); }
  scoped_environment(const scoped_environment&) = delete;
  scoped_environment& operator=(const scoped_environment&) = delete;

 private:
  void set(const char* value) { value != nullptr ? ::setenv(name_, value, 1) : ::unsetenv(name_); }
  const char* name_;
  std::string before_;
  bool was_set_ = false;
};

inline void skip_other_policies(policy needed) {
  const char* forced = std::getenv("TROUPE_POLICY");
  if (forced != nullptr && *forced != '\0' && forced != std::string(name_of(needed)))
    GTEST_SKIP() << "TROUPE_POLICY is set: " << forced;
}

class conformance : public testing::TestWithParam<setting> {
 protected:
  void SetUp() override { skip_other_policies(GetParam().policy); }
  void TearDown() override {
    if (HasFailure()) std::printf("%s\n", repeat_line(GetParam().seed).c_str());
  }

  troupe::runtime_options options() const {
    troupe::runtime_options chosen;
    chosen.workers = GetParam().workers;
    chosen.policy = GetParam().policy;
    chosen.seed = GetParam().seed;
    return chosen;
  }

  // Handlers run beside the test's own thread, whether or not that thread is in run().
  bool threaded() const { return !runs_inside_run(GetParam().policy); }
  // Time is virtual, and a seed makes all choices.
  bool simulated() const { return GetParam().policy == policy::simulated; }
  unsigned workers() const { return GetParam().workers; }
};

// Waits until the variable has this value, which another thread is sure to store. Otherwise the
// test's time limit ends the test.
template <class T>
void wait_for(const std::atomic<T>& value, T wanted) {
  for (T seen = value.load(); seen != wanted; seen = value.load()) value.wait(seen);
}

template <class T>
void set_and_wake(std::atomic<T>& value, T now) {
  value.store(now);
  value.notify_all();
}

}  // namespace troupe::test

#define TROUPE_TEST_EACH(suite, settings)                               \
  INSTANTIATE_TEST_SUITE_P(                                             \
      policies, suite, ::testing::ValuesIn(::troupe::test::settings()), \
      [](const auto& parameter) { return ::troupe::test::name_of(parameter.param); })
