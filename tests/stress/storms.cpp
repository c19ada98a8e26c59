// Everything at the same time: senders outside and inside, stealing, actors that are created and
// destroyed, refs that are copied and dropped.
#include <random>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

class storms : public conformance {};

struct target {
  std::atomic<std::uint64_t>* sum;
  std::atomic<int>* alive;
  std::uint64_t mine = 0;
  bool inside = false;
  target(std::atomic<std::uint64_t>* sum, std::atomic<int>* alive) : sum(sum), alive(alive) {
    ++*alive;
  }
  target(const target&) = delete;
  ~target() {
    *sum += mine;
    --*alive;
  }
  void hit(unsigned work) {
    if (inside) std::abort();
    inside = true;
    volatile unsigned sink = 0;
    for (unsigned i = 0; i < work; ++i) sink = sink + i;
    ++mine;
    inside = false;
  }
};

// Makes the queue of one worker long.
struct hammer {
  std::vector<ref<target>> all;
  int left;
  hammer(std::vector<ref<target>> all, int left) : all(std::move(all)), left(left) {}
  void go() {
    for (auto& one : all) one.tell<&target::hit>(200u);
    if (--left > 0) self(this).tell<&hammer::go>();
  }
};

TEST_P(storms, outside_threads_hammer_actors_while_workers_steal) {
  std::atomic<std::uint64_t> sum{0};
  std::atomic<int> alive{0};
  const int each = fewer(20000), rounds = each / 64;
  {
    runtime rt(options());
    std::vector<ref<target>> all;
    for (int i = 0; i < 64; ++i) all.push_back(rt.spawn<target>(&sum, &alive));
    std::vector<std::thread> outside;
    for (unsigned t = 0; t < 4; ++t) {
      outside.emplace_back([&all, t, open = rt.hold()] {
        std::minstd_rand random(t + 1);
        for (int i = 0; i < each; ++i)
          all[random() % all.size()].tell<&target::hit>(static_cast<unsigned>(random() % 300));
      });
    }
    rt.spawn<hammer>(all, rounds).tell<&hammer::go>();
    rt.run();
    for (auto& thread : outside) thread.join();
    all.clear();
    rt.run();
    EXPECT_EQ(alive.load(), 0);
  }
  EXPECT_EQ(sum.load(), static_cast<std::uint64_t>(4 * each + 64 * rounds));
}

struct holder {
  std::vector<ref<target>> kept;
  std::minstd_rand random{7};
  void take(ref<target> one, ref<holder> next, int hops) {
    one.tell<&target::hit>(0u);
    if (kept.size() < 50) {
      kept.push_back(one);
    } else {
      kept[random() % kept.size()] = one;
    }
    if (hops > 0) next.tell<&holder::take>(std::move(one), self(this), hops - 1);
  }
  void clear() { kept.clear(); }
};

TEST_P(storms, refs_are_copied_and_dropped_everywhere) {
  std::atomic<std::uint64_t> sum{0};
  std::atomic<int> alive{0};
  const int tokens = fewer(1000), hops = 30;
  runtime rt(options());
  std::vector<ref<holder>> holders;
  for (int i = 0; i < 8; ++i)
    holders.push_back(i == 3 ? rt.spawn<holder>(pinned("holder")) : rt.spawn<holder>());
  std::vector<std::thread> outside;
  for (unsigned t = 0; t < 2; ++t) {
    outside.emplace_back([&, t, open = rt.hold()] {
      for (int i = 0; i < tokens; ++i) {
        auto one = rt.spawn<target>(&sum, &alive);
        auto copy = one;
        auto moved = std::move(copy);
        const auto at = static_cast<unsigned>(i) + t;
        holders[at % 8].tell<&holder::take>(one, holders[(at + 3) % 8], hops);
        copy = moved;
      }
    });
  }
  rt.run();
  for (auto& thread : outside) thread.join();
  for (auto& one : holders) one.tell<&holder::clear>();
  rt.run();
  EXPECT_EQ(alive.load(), 0);
  EXPECT_EQ(sum.load(), static_cast<std::uint64_t>(2 * tokens * (hops + 1)));
}

struct spawner {
  runtime* rt;
  std::atomic<int>* alive;
  std::atomic<int>* born;
  int depth;
  ref<spawner> parent;
  int waiting = 0;
  spawner(runtime* rt, std::atomic<int>* alive, std::atomic<int>* born, int depth,
          ref<spawner> parent)
      : rt(rt), alive(alive), born(born), depth(depth), parent(std::move(parent)) {
    ++*alive;
    ++*born;
  }
  spawner(const spawner&) = delete;
  ~spawner() { --*alive; }
  void grow() {
    if (depth == 0) return done();
    waiting = 3;
    for (int i = 0; i < 3; ++i) {
      const thread_kind where =
          i == 1 && depth == 2 ? thread_kind(pinned("nursery")) : thread_kind();
      spawn_on<spawner>(*rt, where, unchecked{rt}, unchecked{alive}, unchecked{born}, depth - 1,
                        self(this))
          .tell<&spawner::grow>();
    }
  }
  void child_done() {
    if (--waiting == 0) done();
  }
  void done() {
    if (parent) parent.tell<&spawner::child_done>();
    parent = {};
  }
};

TEST_P(storms, actors_are_born_and_die_across_workers) {
  std::atomic<int> alive{0}, born{0};
  runtime rt(options());
  for (int round = 0; round < fewer(10); ++round) {
    rt.spawn<spawner>(&rt, &alive, &born, 7, ref<spawner>()).tell<&spawner::grow>();
    rt.run();
    ASSERT_EQ(alive.load(), 0);
  }
  EXPECT_EQ(born.load(), fewer(10) * 3280);
}

TEST_P(storms, two_runtimes_send_and_spawn_across) {
  std::atomic<std::uint64_t> sum{0};
  std::atomic<int> alive{0};
  runtime one(options()), two(options());
  const int each = fewer(3000);
  // Handlers of one runtime spawn actors in the other, send to them and drop them.
  const auto cross = [&](runtime& from, runtime& to) {
    for (int i = 0; i < each; ++i) {
      from.post([&sum, &alive, &to, open = to.hold()] {
        auto there = to.spawn<target>(&sum, &alive);
        there.tell<&target::hit>(10u);
        there.tell<&target::hit>(10u);
      });
    }
  };
  cross(one, two);
  cross(two, one);
  std::thread second([&] { two.run(); });
  one.run();
  second.join();
  one.run();
  two.run();
  EXPECT_EQ(alive.load(), 0);
  EXPECT_EQ(sum.load(), static_cast<std::uint64_t>(4 * each));
}

TEST_P(storms, failures_rain_while_refs_go) {
  struct fragile {
    void fail() { throw 1; }
  };
  const int count = fewer(3000);
  runtime_options chosen = options();
  chosen.failures_kept = static_cast<std::size_t>(2 * count);
  chosen.failure_lines = 0;
  runtime rt(chosen);
  for (int i = 0; i < count; ++i) {
    auto one = rt.spawn<fragile>(
        spawn_options{.on_error = i % 2 == 0 ? error_policy::resume : error_policy::stop});
    one.tell<&fragile::fail>();
    one.tell<&fragile::fail>();
  }
  EXPECT_THROW(rt.run(), int);
  EXPECT_EQ(rt.errors().size() + 1, static_cast<std::size_t>(count / 2 * 3));
  EXPECT_EQ(rt.metrics().dead_letters, static_cast<std::uint64_t>(count / 2));
}

TROUPE_TEST_EACH(storms, all_settings);

}  // namespace
}  // namespace troupe::test
