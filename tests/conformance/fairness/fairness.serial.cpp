// P11: no starvation. A runnable actor runs within a bounded time, whatever the others do. P10:
// idle threads use no CPU.
//
// These tests measure time, so they run alone. Bounds are several times what a quiet machine shows.
// The time that a busy machine takes from the test's own threads is measured, too, and allowed for.
#include <algorithm>
#include <chrono>
#include <latch>
#include <thread>
#include <vector>

#include "support/conformance.hpp"
#include "support/timing.hpp"

namespace troupe::test {
namespace {

class p11_fairness : public conformance {};
class p10_idle : public conformance {};

// Two actors that keep each other busy without end: each message that one sends to itself makes it
// send fifty to the other.
struct flooder {
  ref<flooder> other;
  std::atomic<bool>* end;
  std::atomic<std::uint64_t>* handled;
  flooder(std::atomic<bool>* end, std::atomic<std::uint64_t>* handled)
      : end(end), handled(handled) {}
  void meet(ref<flooder> one) { other = std::move(one); }
  void flood() {
    noise();
    if (end->load()) {
      other = {};
      return;
    }
    for (int i = 0; i < 50; ++i) other.tell<&flooder::noise>();
    self(this).tell<&flooder::flood>();
  }
  void noise() { handled->fetch_add(1, std::memory_order_relaxed); }
};

// Notes how many messages of the flood were handled while a message to this actor waited.
struct patient {
  std::vector<std::uint64_t>* waits;
  std::atomic<std::uint64_t>* flooded;
  patient(std::vector<std::uint64_t>* waits, std::atomic<std::uint64_t>* flooded)
      : waits(waits), flooded(flooded) {
    waits->reserve(64);
  }
  void hear(std::uint64_t sent) { waits->push_back(flooded->load() - sent); }
};

// Whether other programs used a good part of the processors that the workers could use.
class crowding {
 public:
  explicit crowding(unsigned workers)
      : processors_(std::min(workers, std::max(1u, std::thread::hardware_concurrency()))) {}
  bool seen() const {
    const std::chrono::duration<double> used = cpu_time_used() - cpu_before_;
    const std::chrono::duration<double> passed = clock::now() - began_;
    return used < 0.8 * processors_ * passed;
  }

 private:
  const unsigned processors_;
  const std::chrono::microseconds cpu_before_ = cpu_time_used();
  const clock::time_point began_ = clock::now();
};

// Takes of each actor's waits the one at this share, and of these the 99th percentile.
std::uint64_t waited(const std::vector<std::vector<std::uint64_t>>& waits, double share) {
  std::vector<std::uint64_t> each;
  for (std::vector<std::uint64_t> one : waits) {
    std::sort(one.begin(), one.end());
    each.push_back(one[static_cast<std::size_t>(share * static_cast<double>(one.size()))]);
  }
  std::sort(each.begin(), each.end());
  return each[each.size() * 99 / 100];
}

// Waits are measured in messages of the flood, because a wall clock would also measure what else
// the machine does. A worker that loses its processor for some milliseconds still lets its quiet
// actors wait. Beside other programs that happens in some of the rounds, so there the median of the
// rounds counts.
TEST_P(p11_fairness, quiet_actors_do_not_wait_behind_a_flooding_pair) {
  const int count = 1000, rounds = fewer(20);
  // A fair share is one turn of each flooder: at most this many messages, and fewer when they come
  // one by one.
  const std::uint64_t allowed = 5 * 2 * turn_limits{}.messages;
  std::uint64_t best = UINT64_MAX, best_median = UINT64_MAX;
  bool crowded = true;  // so in each attempt so far
  for (int attempt = 0; attempt < attempts_max && best > allowed; ++attempt) {
    const crowding others(GetParam().policy == policy::simulated ? 1 : GetParam().workers);
    std::atomic<bool> end{false};
    std::atomic<std::uint64_t> flooded{0};
    std::vector<std::vector<std::uint64_t>> waits(count);
    runtime rt(options());
    auto a = rt.spawn<flooder>(&end, &flooded), b = rt.spawn<flooder>(&end, &flooded);
    a.tell<&flooder::meet>(b);
    b.tell<&flooder::meet>(a);
    std::vector<ref<patient>> all;
    for (auto& one : waits) all.push_back(rt.spawn<patient>(&one, &flooded));
    rt.run();
    a.tell<&flooder::flood>();
    b.tell<&flooder::flood>();
    std::thread outside([&, open = rt.hold()] {
      for (int round = 0; round < rounds; ++round) {
        for (auto& one : all) one.tell<&patient::hear>(flooded.load());
        // Waits until the last one has heard: the test must not measure a queue that it made
        // itself.
        std::latch heard(1);
        all.back().tell([&heard](patient&) { heard.count_down(); });
        heard.wait();
      }
      end = true;
    });
    rt.run();
    outside.join();
    crowded = others.seen() && crowded;
    best = std::min(best, waited(waits, 0.99));
    best_median = std::min(best_median, waited(waits, 0.5));
  }
  RecordProperty("messages_waited", std::to_string(best));
  EXPECT_LE(crowded ? best_median : best, allowed)
      << "messages of the flood while a quiet actor waited, p99, the best of " << attempts_max;
}

// An actor that is always busy by messages to itself. Each takes `length`.
struct turner {
  std::atomic<bool>* end;
  nanoseconds length;
  std::atomic<std::uint64_t> turns{0};
  turner(std::atomic<bool>* end, nanoseconds length) : end(end), length(length) {}
  void go() {
    turns.fetch_add(1, std::memory_order_relaxed);
    if (length >= 1ms) {
      std::this_thread::sleep_for(length);  // sleeps: a handler that blocks
    } else if (length > 0ns) {
      busy_for(length);
    }
    if (!end->load(std::memory_order_relaxed)) self(this).tell<&turner::go>();
  }
};

// Starts a group of actors on the worker where it runs. Two starters wait for each other, so they
// run on different workers.
struct starter {
  std::vector<ref<turner>> mine;
  std::atomic<int>* started;
  starter(std::vector<ref<turner>> mine, std::atomic<int>* started)
      : mine(std::move(mine)), started(started) {}
  void start() {
    ++*started;
    while (started->load() < 2) std::this_thread::yield();
    for (auto& one : mine) one.tell<&turner::go>();
  }
};

// Returns the turns of the most served actor divided by those of the least served one, after the
// pool had time to settle.
double unfairness(runtime_options chosen, int few, int many, nanoseconds length) {
  std::atomic<bool> end{false};
  std::atomic<int> started{0};
  runtime rt(chosen);
  std::vector<turner*> all;
  std::vector<ref<turner>> groups[2];
  for (int i = 0; i < few + many; ++i) {
    auto one = rt.spawn<turner>(&end, length);
    one.tell([&all](turner& self) { all.push_back(&self); });
    rt.run();
    groups[i < few ? 0 : 1].push_back(one);
  }
  for (const auto& group : groups) rt.spawn<starter>(group, &started).tell<&starter::start>();
  double ratio = 0;
  std::thread watch([&, open = rt.hold()] {
    while (started.load() < 2) std::this_thread::yield();
    std::this_thread::sleep_for(300ms);  // sleeps: the time that the pool has to settle
    std::vector<std::uint64_t> before;
    for (turner* one : all) before.push_back(one->turns.load());
    std::this_thread::sleep_for(500ms);  // sleeps: the time that is measured
    std::uint64_t least = UINT64_MAX, most = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::uint64_t got = all[i]->turns.load() - before[i];
      least = std::min(least, got);
      most = std::max(most, got);
    }
    ratio = static_cast<double>(most) / static_cast<double>(std::max<std::uint64_t>(least, 1));
    end = true;
  });
  rt.run();
  watch.join();
  return ratio;
}

void expect_balance(const runtime_options& chosen, int few, int many, nanoseconds length) {
  double best = 1e9;
  for (int attempt = 0; attempt < attempts_max && best > 4; ++attempt)
    best = std::min(best, unfairness(chosen, few, many, length));
  EXPECT_LE(best, slow ? 20.0 : 4.0)
      << "turns of the most served actor by those of the least served one";
}

TEST_P(p11_fairness, groups_that_settle_on_one_worker_are_balanced_again) {
  if (workers() != 2) GTEST_SKIP() << "needs two workers: two workers";
  expect_balance(options(), 10, 1000, 0ns);
}

TEST_P(p11_fairness, groups_with_long_turns_are_balanced_as_well) {
  if (workers() != 2) GTEST_SKIP() << "needs two workers: two workers";
  expect_balance(options(), 4, 100, 100us);
}

TEST_P(p11_fairness, groups_with_very_long_turns_are_balanced_as_well) {
  if (workers() != 2) GTEST_SKIP() << "needs two workers: two workers";
  expect_balance(options(), 2, 12, 20ms);
}

// The CPU time during which the pool, a pinned thread and the main thread wait.
TEST_P(p10_idle, parked_threads_use_less_than_a_thousandth_of_a_core) {
  const std::chrono::seconds span = std::getenv("TROUPE_DEEP") != nullptr ? 10s : 1s;
  std::chrono::microseconds best = span;
  for (int attempt = 0; attempt < 3 && best > std::chrono::microseconds(span) / 1000; ++attempt) {
    std::atomic<int> handled{0};
    struct counter {
      std::atomic<int>* handled;
      explicit counter(std::atomic<int>* handled) : handled(handled) {}
      void work() { ++*handled; }
    };
    runtime rt(options());
    for (const thread_kind& where : thread_kinds("idle")) {
      spawn_on<counter>(rt, where, unchecked{&handled}).tell<&counter::work>();
    }
    rt.run();
    std::thread outside([&, open = rt.hold()] {
      std::this_thread::sleep_for(300ms);  // sleeps: until the workers are parked for good
      const auto before = cpu_time_used();
      std::this_thread::sleep_for(span);  // sleeps: the time that is measured
      best = std::min(best, cpu_time_used() - before);
    });
    rt.run();
    outside.join();
  }
  // Sanitizers have threads of their own, which use CPU time.
  EXPECT_LE(best.count(), (std::chrono::microseconds(span) / (slow ? 20 : 1000)).count())
      << "microseconds";
}

TROUPE_TEST_EACH(p11_fairness, threaded_settings);
TROUPE_TEST_EACH(p10_idle, each_policy);

}  // namespace
}  // namespace troupe::test
