// P1: one actor never runs on two threads at once, and its handlers never overlap.
#include <array>
#include <random>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

class p1_isolation : public conformance {};

// Reports when two handlers of the actor overlap, or when one does not see all that the one before
// it wrote.
struct guarded {
  std::atomic<bool>* broken;
  std::atomic<bool> inside{false};
  std::uint64_t handled = 0;               // plain, so that sanitizers see a data race
  std::array<std::uint64_t, 16> copies{};  // all equal outside of handlers

  explicit guarded(std::atomic<bool>* broken) : broken(broken) {}

  void enter() {
    if (inside.exchange(true)) broken->store(true);
    for (const std::uint64_t copy : copies) {
      if (copy != handled) broken->store(true);
    }
    ++handled;
    for (std::uint64_t& copy : copies) copy = handled;
    inside.store(false);
  }
};

struct crowd_member : guarded {
  std::vector<ref<crowd_member>> others;
  std::minstd_rand random;

  crowd_member(std::atomic<bool>* broken, unsigned seed) : guarded(broken), random(seed) {}

  void meet(std::vector<ref<crowd_member>> all) { others = std::move(all); }
  void hit(int hops) {
    enter();
    if (hops > 0) others[random() % others.size()].template tell<&crowd_member::hit>(hops - 1);
  }
  void forget() { others.clear(); }
};

TEST_P(p1_isolation, handlers_of_one_actor_never_overlap_under_cross_traffic) {
  std::atomic<bool> broken{false};
  runtime rt(options());
  std::vector<ref<crowd_member>> all;
  for (unsigned i = 0; i < 40; ++i) all.push_back(rt.spawn<crowd_member>(&broken, i + 1));
  for (auto& one : all) one.tell<&crowd_member::meet>(all);
  const int hops = fewer(2000);
  for (auto& one : all) {
    for (int i = 0; i < 4; ++i) one.tell<&crowd_member::hit>(hops);
  }
  std::vector<std::thread> outside;
  for (int i = 0; i < 2; ++i) {
    outside.emplace_back([&, open = rt.hold()] {
      for (int round = 0; round < fewer(200); ++round) {
        for (auto& one : all) one.tell<&crowd_member::hit>(1);
      }
    });
  }
  rt.run();
  for (auto& thread : outside) thread.join();
  EXPECT_FALSE(broken.load());

  std::atomic<std::uint64_t> handled{0};
  for (auto& one : all) {
    one.tell([&handled](crowd_member& self) { handled += self.handled; });
    one.tell<&crowd_member::forget>();
  }
  rt.run();
  const auto expected = 40ull * 4 * static_cast<unsigned>(hops + 1) +
                        2ull * static_cast<unsigned>(fewer(200)) * 40 * 2;
  EXPECT_EQ(handled.load(), expected);
}

struct many_ways : guarded {
  explicit many_ways(std::atomic<bool>* broken) : guarded(broken) {}
  void again(int left) {
    enter();
    if (left > 0) self(this).template tell<&many_ways::again>(left - 1);
  }
};

TEST_P(p1_isolation, an_actor_hammered_by_everybody_at_once_runs_on_one_thread) {
  std::atomic<bool> broken{false};
  runtime rt(options());
  auto one = rt.spawn<many_ways>(&broken);
  struct hammer {
    void run(ref<many_ways> at, int n) {
      for (int i = 0; i < n; ++i) at.tell<&many_ways::enter>();
    }
  };
  const int each = fewer(3000);
  for (int i = 0; i < 6; ++i) rt.spawn<hammer>().tell<&hammer::run>(one, each);
  rt.spawn<hammer>(pinned("hammer")).tell<&hammer::run>(one, each);
  rt.spawn<hammer>(on_main()).tell<&hammer::run>(one, each);
  one.tell<&many_ways::again>(each - 1);
  std::thread outside([&, open = rt.hold()] {
    for (int i = 0; i < each; ++i) one.tell<&many_ways::enter>();
  });
  rt.run();
  outside.join();
  EXPECT_FALSE(broken.load());
  std::uint64_t handled = 0;
  one.tell([&handled](many_ways& self) { handled = self.handled; });
  rt.run();
  EXPECT_EQ(handled, 10u * static_cast<unsigned>(each));
}

// The constructor is part of the actor's life: a message that it sends to its own actor waits until
// it is done.
struct early_riser {
  std::atomic<int>* order;
  bool built = false;
  early_riser(runtime& rt, std::atomic<int>* order, bool wait) : order(order) {
    self(this).tell<&early_riser::wake>();
    // If the pool were free to run the handler, it would have run it before these procedures (with
    // one worker, at least).
    std::atomic<int> passed{0};
    for (int i = 0; wait && i < 64; ++i) {
      rt.post([&passed] { passed += 1, passed.notify_all(); });
    }
    if (wait) wait_for(passed, 64);
    built = true;
  }
  void wake() { order->store(built ? 1 : 2); }
};

TEST_P(p1_isolation, a_message_that_the_constructor_sends_to_itself_waits_for_its_end) {
  std::atomic<int> order{0};
  runtime rt(options());
  auto one = rt.spawn<early_riser>(rt, &order, threaded());
  rt.run();
  EXPECT_EQ(order.load(), 1) << "2: the handler ran while the object was under construction";
}

TROUPE_TEST_EACH(p1_isolation, all_settings);

}  // namespace
}  // namespace troupe::test
