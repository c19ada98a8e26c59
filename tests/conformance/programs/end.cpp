// P6: run() returns if and only if the program has no more work.
#include <latch>
#include <optional>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

class p6_end : public conformance {};

struct counter {
  std::atomic<int>* seen;
  explicit counter(std::atomic<int>* seen) : seen(seen) {}
  void add() { ++*seen; }
  void countdown(int left) {
    ++*seen;
    if (left > 1) self(this).tell<&counter::countdown>(left - 1);
  }
};

TEST_P(p6_end, an_empty_program_returns_at_once) {
  runtime rt(options());
  rt.run();
  rt.run();
}

TEST_P(p6_end, a_runtime_that_never_runs_ends_too) { runtime rt(options()); }

TEST_P(p6_end, actors_without_messages_do_not_keep_run) {
  std::atomic<int> seen{0};
  runtime rt(options());
  auto on_pool = rt.spawn<counter>(&seen);
  auto on_thread = rt.spawn<counter>(pinned("quiet"), unchecked{&seen});
  auto here = rt.spawn<counter>(on_main(), unchecked{&seen});
  rt.run();
  EXPECT_EQ(seen.load(), 0);
}

TEST_P(p6_end, only_pinned_work) {
  std::atomic<int> seen{0};
  runtime rt(options());
  rt.spawn<counter>(pinned("alone"), unchecked{&seen}).tell<&counter::countdown>(1000);
  rt.run();
  EXPECT_EQ(seen.load(), 1000);
}

TEST_P(p6_end, only_work_on_the_main_thread) {
  std::atomic<int> seen{0};
  runtime rt(options());
  rt.spawn<counter>(on_main(), unchecked{&seen}).tell<&counter::countdown>(1000);
  rt.run();
  EXPECT_EQ(seen.load(), 1000);
}

TEST_P(p6_end, only_posted_procedures) {
  std::atomic<int> seen{0};
  runtime rt(options());
  for (int i = 0; i < 100; ++i) {
    rt.post([&] { rt.post([&] { ++seen; }); });
  }
  rt.run();
  EXPECT_EQ(seen.load(), 100);
}

TEST_P(p6_end, only_the_destruction_of_actors) {
  struct mourner {
    std::atomic<int>* seen;
    std::unique_ptr<int> held = std::make_unique<int>(1);
    explicit mourner(std::atomic<int>* seen) : seen(seen) {}
    mourner(const mourner&) = delete;
    ~mourner() { ++*seen; }
  };
  std::atomic<int> seen{0};
  runtime rt(options());
  for (int i = 0; i < 100; ++i) {
    static_cast<void>(rt.spawn<mourner>(&seen));
    static_cast<void>(rt.spawn<mourner>(pinned("mourners"), unchecked{&seen}));
  }
  rt.run();
  EXPECT_EQ(seen.load(), 200);
}

TEST_P(p6_end, the_last_message_comes_from_an_outside_thread_under_a_hold) {
  for (int round = 0; round < fewer(50); ++round) {
    std::atomic<int> seen{0};
    runtime rt(options());
    auto one = rt.spawn<counter>(&seen);
    std::latch running(1);
    rt.post([&] { running.count_down(); });
    std::thread outside([&, open = rt.hold()] {
      running.wait();
      one.tell<&counter::add>();
    });
    rt.run();
    EXPECT_EQ(seen.load(), 1);
    outside.join();
  }
}

TEST_P(p6_end, work_bounces_between_pool_pinned_and_main_until_the_end) {
  struct bouncer {
    std::vector<ref<bouncer>> others;
    std::atomic<int>* seen;
    explicit bouncer(std::atomic<int>* seen) : seen(seen) {}
    void meet(std::vector<ref<bouncer>> all) { others = std::move(all); }
    void hit(int left) {
      ++*seen;
      if (left > 1)
        others[static_cast<unsigned>(left) % others.size()].template tell<&bouncer::hit>(left - 1);
    }
  };
  std::atomic<int> seen{0};
  runtime rt(options());
  std::vector<ref<bouncer>> all{
      rt.spawn<bouncer>(&seen), rt.spawn<bouncer>(pinned("one"), unchecked{&seen}),
      rt.spawn<bouncer>(on_main(), unchecked{&seen}),
      rt.spawn<bouncer>(pinned("two"), unchecked{&seen}), rt.spawn<bouncer>(&seen)};
  for (auto& one : all) one.tell<&bouncer::meet>(all);
  const int hops = fewer(2000);
  all[0].tell<&bouncer::hit>(hops);
  rt.run();
  EXPECT_EQ(seen.load(), hops);
}

TEST_P(p6_end, steps_run_one_after_another_each_to_quiescence) {
  std::atomic<int> seen{0};
  runtime rt(options());
  auto one = rt.spawn<counter>(&seen);
  auto two = rt.spawn<counter>(pinned("two"), unchecked{&seen});
  auto three = rt.spawn<counter>(on_main(), unchecked{&seen});
  for (int step = 1; step <= 100; ++step) {
    one.tell<&counter::countdown>(5);
    two.tell<&counter::countdown>(5);
    three.tell<&counter::countdown>(5);
    rt.run();
    ASSERT_EQ(seen.load(), 15 * step);
  }
}

TEST_P(p6_end, work_that_is_done_before_run_does_not_disturb_it) {
  std::atomic<int> seen{0};
  runtime rt(options());
  auto one = rt.spawn<counter>(&seen);
  for (int i = 0; i < 100; ++i) {
    one.tell<&counter::add>();
    if (threaded()) {
      while (seen.load() <= i) std::this_thread::yield();
    }
  }
  rt.run();
  EXPECT_EQ(seen.load(), 100);
  rt.run();
}

TEST_P(p6_end, another_thread_may_call_run_the_next_time) {
  std::atomic<int> seen{0};
  runtime rt(options());
  auto here = rt.spawn<counter>(on_main(), unchecked{&seen});
  for (int i = 0; i < 5; ++i) {
    here.tell<&counter::add>();
    std::thread([&] { rt.run(); }).join();
    EXPECT_EQ(seen.load(), i + 1);
  }
}

TEST_P(p6_end, several_runtimes_in_one_process_tell_each_others_actors) {
  struct bridge {
    ref<bridge> other;
    std::atomic<int>* seen;
    explicit bridge(std::atomic<int>* seen) : seen(seen) {}
    void link(ref<bridge> to) { other = std::move(to); }
    void hit(int left) {
      ++*seen;
      if (left > 1) other.template tell<&bridge::hit>(left - 1);
      if (left == 1) other = {};
    }
    void cut() { other = {}; }
  };
  std::atomic<int> seen{0};
  runtime one(options()), two(options());
  auto a = one.spawn<bridge>(&seen);
  auto b = two.spawn<bridge>(&seen);
  a.tell<&bridge::link>(b);
  b.tell<&bridge::link>(a);
  const int hops = fewer(2000);
  {
    // Each runtime holds the other one open: only together they are out of work.
    std::optional<hold> open_one = one.hold(), open_two = two.hold();
    std::thread second([&] { two.run(); });
    a.tell<&bridge::hit>(hops);
    std::thread watch([&] {
      while (seen.load() < hops) std::this_thread::yield();
      open_one.reset();
      open_two.reset();
    });
    one.run();
    second.join();
    watch.join();
  }
  EXPECT_EQ(seen.load(), hops);
  a.tell<&bridge::cut>();
  b.tell<&bridge::cut>();
  one.run();
  two.run();
}

TEST_P(p6_end, a_runtime_lives_inside_anothers_actor) {
  struct island {
    runtime inner;
    std::atomic<int>* seen;
    island(runtime_options chosen, std::atomic<int>* seen) : inner(std::move(chosen)), seen(seen) {}
    void work() {
      auto one = inner.spawn<counter>(seen);
      one.template tell<&counter::countdown>(100);
    }
  };
  if (!threaded()) GTEST_SKIP() << "needs threads: the inner one would need a run() of its own";
  std::atomic<int> seen{0};
  runtime rt(options());
  auto home = rt.spawn<island>(options(), &seen);
  home.tell<&island::work>();
  while (seen.load() < 100) std::this_thread::yield();
  rt.run();
}

// Holds.

TEST_P(p6_end, a_hold_keeps_run_until_it_is_released) {
  runtime rt(options());
  std::atomic<bool> returned{false};
  hold open = rt.hold();
  std::latch started(1);
  rt.post([&] { started.count_down(); });
  std::thread outside([&] {
    started.wait();
    EXPECT_FALSE(returned.load());
    open.release();
  });
  rt.run();
  returned = true;
  outside.join();
}

TEST_P(p6_end, holds_move_and_are_released_once) {
  runtime rt(options());
  hold one = rt.hold();
  hold two = std::move(one);
  one.release();
  hold three;
  three = std::move(two);
  three = rt.hold();  // releases the hold that it had before
  two = {};
  hold& alias = three;
  three = std::move(alias);
  three.release();
  three.release();
  rt.run();
}

TEST_P(p6_end, a_hold_released_in_a_handler_lets_run_return) {
  struct keeper {
    hold open;
    explicit keeper(hold open) : open(std::move(open)) {}
    void done() { open.release(); }
  };
  runtime rt(options());
  rt.spawn<keeper>(rt.hold()).tell<&keeper::done>();
  rt.run();
  rt.spawn<keeper>(pinned("keeper"), rt.hold()).tell<&keeper::done>();
  rt.run();
  rt.spawn<keeper>(on_main(), rt.hold()).tell<&keeper::done>();
  rt.run();
}

TEST_P(p6_end, a_hold_dies_with_its_actor) {
  struct keeper {
    hold open;
    explicit keeper(hold open) : open(std::move(open)) {}
  };
  runtime rt(options());
  { auto one = rt.spawn<keeper>(rt.hold()); }
  rt.run();
}

TEST_P(p6_end, a_hold_outlives_the_runtime) {
  hold open;
  {
    runtime rt(options());
    open = rt.hold();
  }
  open.release();
  {
    runtime rt(options());
    open = rt.hold();
    struct never {
      ref<never> to;
      void keep(ref<never> one) { to = std::move(one); }
    };
    auto one = rt.spawn<never>();
    one.tell<&never::keep>(one);
  }
}

TEST_P(p6_end, many_threads_take_and_release_holds) {
  runtime rt(options());
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t) {
    all.emplace_back([&, open = rt.hold()] {
      for (int i = 0; i < fewer(2000); ++i) {
        hold one = rt.hold();
        hold two = std::move(one);
      }
    });
  }
  rt.run();
  for (auto& thread : all) thread.join();
}

TROUPE_TEST_EACH(p6_end, all_settings);

}  // namespace
}  // namespace troupe::test
