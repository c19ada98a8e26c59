// Runtimes that start, run and end repeatedly, with everything in flight: no hang, no early end, no
// lost message.
#include <random>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

class start_run_stop : public conformance {};

// Small work that varies: actors of the pool, of a pinned thread and of the main thread send to
// each other.
struct player {
  std::vector<ref<player>> others;
  std::atomic<int>* handled;
  std::minstd_rand random;
  player(std::atomic<int>* handled, unsigned seed) : handled(handled), random(seed) {}
  void meet(std::vector<ref<player>> all) { others = std::move(all); }
  void play(int left) {
    ++*handled;
    // A stop may have discarded meet().
    if (left > 1 && !others.empty()) others[random() % others.size()].tell<&player::play>(left - 1);
  }
};

std::vector<ref<player>> make_players(runtime& rt, unsigned count, std::atomic<int>* handled) {
  std::vector<ref<player>> all;
  for (unsigned i = 0; i < count; ++i) {
    const thread_kind where = i == 1   ? thread_kind(pinned("player"))
                              : i == 2 ? thread_kind(on_main())
                                       : thread_kind();
    all.push_back(spawn_on<player>(rt, where, unchecked{handled}, i + 1));
  }
  for (auto& one : all) one.tell<&player::meet>(all);
  return all;
}

TEST_P(start_run_stop, a_thousand_runs_with_pinned_main_and_outside_senders) {
  // For each setting: the suite has eleven of them.
  const int runs = fewer(1000 / 11 + 1);
  std::mt19937 random(static_cast<unsigned>(GetParam().workers * 7 + GetParam().seed));
  for (int run = 0; run < runs; ++run) {
    std::atomic<int> handled{0};
    int expected = 0;
    runtime rt(options());
    auto all = make_players(rt, 6, &handled);
    const auto kind = random() % 4;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (kind == 1 && i != 1) continue;  // the work begins only on the pinned thread
      if (kind == 2 && i != 2) continue;  // or only on the main thread
      const int hops = 1 + static_cast<int>(random() % 40);
      all[i].tell<&player::play>(hops);
      expected += hops;
    }
    std::vector<std::thread> outside;
    for (std::size_t t = 0; kind == 3 && t < 2; ++t) {
      const int hops = 1 + static_cast<int>(random() % 20);
      expected += 5 * hops;
      outside.emplace_back([&all, t, hops, open = rt.hold()] {
        for (int i = 0; i < 5; ++i) all[t].tell<&player::play>(hops);
      });
    }
    rt.run();
    ASSERT_EQ(handled.load(), expected) << "run " << run << " of kind " << kind;
    for (auto& thread : outside) thread.join();
    if (run % 3 == 0) {
      rt.run();
      all[0].tell<&player::play>(10);
      rt.run();
      ASSERT_EQ(handled.load(), expected + 10) << "run " << run << " again";
    }
    // The players refer to each other: the runtime's end destroys the cycle.
  }
}

TEST_P(start_run_stop, runtimes_end_while_everything_is_in_flight) {
  for (int run = 0; run < fewer(60); ++run) {
    std::atomic<int> handled{0};
    std::atomic<bool> end{false};
    std::vector<std::thread> outside;
    {
      runtime rt(options());
      auto all = make_players(rt, 20, &handled);
      for (auto& one : all) one.tell<&player::play>(1'000'000);
      for (int t = 0; t < 2; ++t) {
        outside.emplace_back([all, &end] {
          // Only a few thousand messages: senders that are faster than one slow thread would fill
          // the memory.
          for (int i = 0; i < 500 && !end.load(); ++i) {
            for (const auto& one : all) one.tell<&player::play>(3);
          }
        });
      }
      if (run % 3 == 1) {
        rt.stop(run % 2 == 0 ? stop_mode::drain : stop_mode::discard, std::chrono::milliseconds(1));
        try {
          rt.run();
        } catch (const deadline_error&) {
        }
      } else if (threaded()) {
        while (handled.load() < 1000) std::this_thread::yield();
      }
    }
    end = true;
    for (auto& thread : outside) thread.join();
  }
}

TEST_P(start_run_stop, empty_and_nearly_empty_runs) {
  std::atomic<int> handled{0};
  for (int run = 0; run < fewer(300); ++run) {
    runtime rt(options());
    if (run % 2 == 0) rt.post([&handled] { ++handled; });
    if (run % 3 == 0)
      rt.spawn<player>(pinned("one"), unchecked{&handled}, 1u).tell<&player::play>(1);
    if (run % 5 != 0) rt.run();
  }
}

TROUPE_TEST_EACH(start_run_stop, all_settings);

}  // namespace
}  // namespace troupe::test
