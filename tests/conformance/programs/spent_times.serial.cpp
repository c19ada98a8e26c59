// The processor time of handlers that an observer tells, beside that which the handlers measure
// with their thread's own clock: for handlers of each kind, on a quiet machine and beside a load.
#include <atomic>
#include <chrono>
#include <ctime>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "support/observed.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

std::int64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Adds the processor time that the calling thread uses until its end.
class measured {
 public:
  explicit measured(std::atomic<std::int64_t>& to) : to_(to) {}
  ~measured() { to_ += clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_; }
  measured(const measured&) = delete;

 private:
  std::atomic<std::int64_t>& to_;
  const std::int64_t began_ = clock_ns(CLOCK_THREAD_CPUTIME_ID);
};

void burn(std::chrono::nanoseconds span) {
  const std::int64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + span.count();
  while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until) {
  }
}

// For how long the calling thread has waited for a processor (/proc/PID/schedstat).
std::int64_t delay_ns() {
  std::ifstream file("/proc/thread-self/schedstat");
  std::int64_t running = 0, waiting = 0;
  file >> running >> waiting;
  return waiting;
}

struct spent {
  std::atomic<std::int64_t> steady{0}, rare{0}, blocked{0};
  std::atomic<bool> ends{false};
};

// Each sends itself the next message until the end.
struct spender {
  spent& to;
  int count = 0;
  void again(auto method) {
    if (!to.ends) method();
  }
  void constant() {
    const measured here(to.steady);
    burn(50us);
    again([this] { self(this).tell<&spender::constant>(); });
  }
  void small() {
    const measured here(to.steady);
    burn(2us);
    again([this] { self(this).tell<&spender::large>(); });
  }
  void large() {
    const measured here(to.rare);
    burn(100us);
    again([this] { self(this).tell<&spender::small>(); });
  }
  // One message in 500 takes 20 ms, the others 60 us: 40 % of the time.
  void sometimes_long() {
    const measured here(to.steady);
    burn(++count % 500 == 0 ? 20ms : 60us);
    again([this] { self(this).tell<&spender::sometimes_long>(); });
  }
  void spin() {
    const std::int64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    while (!to.ends) to.steady = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
  }
  void sleep() {
    const measured here(to.steady);
    const std::int64_t began = clock_ns(CLOCK_MONOTONIC), delayed = delay_ns();
    std::this_thread::sleep_for(3ms);  // sleeps: a handler that blocks
    // Beside a load, the thread waits for a processor when it has slept: it blocks no longer.
    to.blocked += clock_ns(CLOCK_MONOTONIC) - began - (delay_ns() - delayed);
    again([this] { self(this).tell<&spender::sleep>(); });
  }
};

struct kind {
  const char* name;
  void (*begin)(const ref<spender>& one);
  const char* steady;
  const char* rare = nullptr;
  bool blocks = false;
  // Samples of a share of one half are right to 5 points only after some seconds.
  std::chrono::milliseconds span = 1'500ms;
};

constexpr kind kinds[] = {
    {"constant", [](const ref<spender>& one) { one.tell<&spender::constant>(); }, "::constant"},
    {"mixed", [](const ref<spender>& one) { one.tell<&spender::small>(); }, "::small", "::large"},
    {"rare", [](const ref<spender>& one) { one.tell<&spender::sometimes_long>(); },
     "::sometimes_long", nullptr, false, 5s},
    {"spinning", [](const ref<spender>& one) { one.tell<&spender::spin>(); }, "::spin"},
    {"blocking", [](const ref<spender>& one) { one.tell<&spender::sleep>(); }, "::sleep", nullptr,
     true},
};

class spent_times : public observed_runtimes {
 protected:
  // Whether a thread sleeps, only samples show.
  static constexpr double points = 0.05, blocked_points = 0.1;

  // All handlers together have the time of all threads; a little may not be shared out yet.
  static void expect_sums(const json& own, double seconds) {
    double handlers = 0, threads = own["others"]["busy_ns"];
    for (const json& one : own["workers"]) threads += one["busy_ns"].get<double>();
    for (const json& of_class : own["classes"]) {
      for (const json& one : of_class["handlers"]) handlers += one["busy_ns"].get<double>();
    }
    for (const json& one : own["other_work"]) handlers += one["busy_ns"].get<double>();
    EXPECT_EQ(threads, own["total"]["busy_ns"]);
    EXPECT_LE(handlers, threads);
    EXPECT_NEAR(handlers, threads, points * seconds * 1e9) << own["other_work"];
  }

  void expect_true(const kind& of) {
    SCOPED_TRACE(of.name);
    spent measured_times;
    runtime_options chosen = observed();
    chosen.warning_lines = 0;
    runtime rt(chosen);
    const auto one = rt.spawn<spender>(measured_times);
    std::thread looks([&, held = rt.hold()] {
      asker here;
      of.begin(one);
      std::this_thread::sleep_for(200ms);  // sleeps: until the handlers are at work
      const auto times = [&](const json& own, const char* handler, const char* which) {
        return handler_of(own, "spender", handler)[which].get<double>();
      };
      const std::int64_t began = clock_ns(CLOCK_MONOTONIC);
      const std::int64_t steady = measured_times.steady, rare = measured_times.rare,
                         blocked = measured_times.blocked;
      const json first = here.ask("summary")["runtimes"][0];
      std::this_thread::sleep_for(of.span);  // sleeps: it measures a span of time
      const json last = here.ask("summary")["runtimes"][0];
      const std::int64_t steady_end = measured_times.steady, rare_end = measured_times.rare,
                         blocked_end = measured_times.blocked;
      const auto wall = static_cast<double>(clock_ns(CLOCK_MONOTONIC) - began);
      const auto share = [&](const char* handler, const char* which) {
        return (times(last, handler, which) - times(first, handler, which)) / wall;
      };
      measured_times.ends = true;
      EXPECT_NEAR(share(of.steady, "busy_ns"), static_cast<double>(steady_end - steady) / wall,
                  points);
      if (of.rare != nullptr) {
        EXPECT_NEAR(share(of.rare, "busy_ns"), static_cast<double>(rare_end - rare) / wall, points);
      }
      const double slept = static_cast<double>(blocked_end - blocked) / wall;
      EXPECT_NEAR(share(of.steady, "blocked_ns"), slept, blocked_points);
      if (of.blocks) {
        EXPECT_GT(slept, 0.1);
      }
      expect_sums(last, wall / 1e9);
    });
    rt.run();
    looks.join();
  }
};

TEST_P(spent_times, of_handlers_are_within_five_points_of_their_threads_clocks) {
  for (const kind& one : kinds) expect_true(one);
}

TEST_P(spent_times, are_true_beside_a_full_load) {
  std::atomic<bool> ends{false};
  std::vector<std::thread> load;
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i)
    load.emplace_back([&] {
      while (!ends) {
      }
    });
  for (const kind& one : kinds) expect_true(one);
  ends = true;
  for (std::thread& one : load) one.join();
}

INSTANTIATE_TEST_SUITE_P(policies, spent_times,
                         ::testing::Values(setting{policy::work_stealing, 2, 1}),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace troupe::test
