// P14 and counted refs: an actor is destroyed once it is inactive and no ref to it is left. Actors
// that refer to each other are destroyed at shutdown.
#include <latch>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

class p14_lifetime : public conformance {};

struct instance_counts {
  std::atomic<int> alive{0}, born{0};
};

// Counts its constructions and its living objects.
struct counted {
  instance_counts* in;
  explicit counted(instance_counts* in) : in(in) { ++in->alive, ++in->born; }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;
  ~counted() { --in->alive; }
};

struct simple : counted {
  using counted::counted;
  int handled = 0;
  void work() { ++handled; }
};

TEST_P(p14_lifetime, an_actor_dies_when_its_last_ref_goes) {
  instance_counts all;
  runtime rt(options());
  for (const thread_kind& where : thread_kinds("simple")) {
    auto one = spawn_on<simple>(rt, where, unchecked{&all});
    one.tell<&simple::work>();
    auto copy = one;
    one = {};
    rt.run();
    EXPECT_EQ(all.alive.load(), 1);
    copy = {};
    rt.run();
    EXPECT_EQ(all.alive.load(), 0);
  }
}

TEST_P(p14_lifetime, the_last_ref_goes_on_another_thread) {
  instance_counts all;
  runtime rt(options());
  for (int i = 0; i < fewer(200); ++i) {
    auto one = rt.spawn<simple>(&all);
    std::thread other([one = std::move(one), open = rt.hold()]() mutable {
      one.tell<&simple::work>();
      one = {};
    });
    rt.run();
    other.join();
    ASSERT_EQ(all.alive.load(), 0);
  }
}

TEST_P(p14_lifetime, messages_sent_before_the_last_ref_went_are_handled) {
  struct told : counted {
    std::atomic<int>* seen;
    told(instance_counts* in, std::atomic<int>* seen) : counted(in), seen(seen) {}
    void work() { ++*seen; }
  };
  instance_counts all;
  std::atomic<int> seen{0};
  runtime rt(options());
  for (int i = 0; i < fewer(500); ++i) {
    auto one = rt.spawn<told>(&all, &seen);
    for (int k = 0; k < 10; ++k) one.tell<&told::work>();
  }
  rt.run();
  EXPECT_EQ(seen.load(), 10 * fewer(500));
  EXPECT_EQ(all.alive.load(), 0);
  EXPECT_EQ(rt.metrics().dead_letters, 0u);
}

struct selfish : counted {
  ref<selfish> me;
  explicit selfish(instance_counts* in) : counted(in) {}
  void take() { me = self(this); }
  void drop() { me = {}; }
  void use_then_drop(int left) {
    if (left > 0) {
      me.tell<&selfish::use_then_drop>(left - 1);
    } else {
      me = {};
    }
  }
};

TEST_P(p14_lifetime, the_last_ref_goes_in_the_actors_own_handler) {
  instance_counts all;
  runtime rt(options());
  auto one = rt.spawn<selfish>(&all);
  one.tell<&selfish::take>();
  one.tell<&selfish::use_then_drop>(100);
  one = {};
  rt.run();
  EXPECT_EQ(all.alive.load(), 0);
}

TEST_P(p14_lifetime, an_actor_takes_a_ref_to_itself_after_all_others_went) {
  instance_counts all;
  runtime rt(options());
  struct keeper {
    ref<selfish> kept;
    void keep(ref<selfish> one) { kept = std::move(one); }
    void drop() { kept = {}; }
  };
  auto safe = rt.spawn<keeper>();
  for (int i = 0; i < fewer(200); ++i) {
    {
      auto one = rt.spawn<selfish>(&all);
      one.tell([safe](selfish& me) { safe.tell<&keeper::keep>(self(&me)); });
    }
    rt.run();
    ASSERT_EQ(all.alive.load(), 1);
    safe.tell<&keeper::drop>();
    rt.run();
    ASSERT_EQ(all.alive.load(), 0);
  }
}

struct parting : counted {
  ref<struct heir> to;
  bool* told;
  parting(instance_counts* in, ref<struct heir> to, bool* told)
      : counted(in), to(std::move(to)), told(told) {}
  ~parting();
  void work() { *told = true; }
};
struct heir {
  ref<parting> kept;
  void keep(ref<parting> one) { kept = std::move(one); }
  void use() { kept.tell<&parting::work>(); }
  void drop() { kept = {}; }
};
parting::~parting() {
  self(this).tell<&parting::work>();
  to.tell<&heir::keep>(self(this));
}

TEST_P(p14_lifetime, a_destructor_may_give_its_address_away_and_send_to_itself) {
  instance_counts all;
  bool told = false;
  runtime rt(options());
  auto to = rt.spawn<heir>();
  { auto one = rt.spawn<parting>(&all, to, &told); }
  rt.run();
  EXPECT_EQ(all.alive.load(), 0);
  EXPECT_EQ(rt.metrics().dead_letters, 1u) << "what the destructor sent to itself";
  to.tell<&heir::use>();
  rt.run();
  EXPECT_EQ(rt.metrics().dead_letters, 2u);
  to.tell<&heir::drop>();
  rt.run();
  EXPECT_FALSE(told);
}

TEST_P(p14_lifetime, a_chain_of_refs_is_released_without_recursion) {
  struct link : counted {
    ref<link> next;
    link(instance_counts* in, ref<link> next) : counted(in), next(std::move(next)) {}
  };
  const int length = fewer(1'000'000, 100);
  instance_counts all;
  {
    runtime rt(options());
    ref<link> head;
    for (int i = 0; i < length; ++i) head = rt.spawn<link>(&all, std::move(head));
    EXPECT_EQ(all.alive.load(), length);
    head = {};
    rt.run();
    EXPECT_EQ(all.alive.load(), 0);
    for (int i = 0; i < length; ++i) head = rt.spawn<link>(&all, std::move(head));
    if (GetParam().seed == 2) rt.run();
  }
  EXPECT_EQ(all.alive.load(), 0);
}

TEST_P(p14_lifetime, cycles_are_destroyed_at_shutdown) {
  struct ring : counted {
    ref<ring> next;
    explicit ring(instance_counts* in) : counted(in) {}
    void link(ref<ring> to) { next = std::move(to); }
  };
  instance_counts all;
  {
    runtime rt(options());
    std::vector<ref<ring>> members;
    for (int i = 0; i < 100; ++i) {
      members.push_back(i % 10 == 0   ? rt.spawn<ring>(pinned("ring"), unchecked{&all})
                        : i % 10 == 1 ? rt.spawn<ring>(on_main(), unchecked{&all})
                                      : rt.spawn<ring>(&all));
    }
    for (std::size_t i = 0; i < members.size(); ++i)
      members[i].tell<&ring::link>(members[(i + 1) % members.size()]);
    auto alone = rt.spawn<ring>(&all);
    alone.tell<&ring::link>(alone);
    rt.run();
    EXPECT_EQ(all.alive.load(), 101);
  }
  EXPECT_EQ(all.alive.load(), 0);
}

TEST_P(p14_lifetime, refs_outlive_the_runtime_and_are_copied_and_dropped_then) {
  instance_counts all;
  std::vector<ref<simple>> kept;
  {
    runtime rt(options());
    for (int i = 0; i < 100; ++i) kept.push_back(rt.spawn<simple>(&all));
    rt.run();
  }
  EXPECT_EQ(all.alive.load(), 0);
  auto copies = kept;
  for (auto& one : kept) one.tell<&simple::work>();
  std::thread other([copies = std::move(copies)]() mutable { copies.clear(); });
  kept.clear();
  other.join();
}

TEST_P(p14_lifetime, a_runtime_ends_beside_threads_that_still_send_and_drop) {
  instance_counts all;
  for (int round = 0; round < fewer(100); ++round) {
    std::atomic<bool> end{false};
    std::latch ready(3);
    std::vector<std::thread> outside;
    {
      runtime rt(options());
      for (int t = 0; t < 2; ++t) {
        std::vector<ref<simple>> mine;
        for (int i = 0; i < 20; ++i)
          mine.push_back(i % 5 == 0 ? rt.spawn<simple>(pinned("late"), unchecked{&all})
                                    : rt.spawn<simple>(&all));
        outside.emplace_back([&, mine = std::move(mine)]() mutable {
          ready.arrive_and_wait();
          while (!mine.empty()) {
            for (auto& one : mine) one.tell<&simple::work>();
            if (end.load()) mine.pop_back();
          }
        });
      }
      ready.arrive_and_wait();
      end = true;
    }
    for (auto& thread : outside) thread.join();
    ASSERT_EQ(all.alive.load(), 0);
  }
}

TEST_P(p14_lifetime, stop_ends_an_actor_behind_the_messages_sent_before) {
  struct stoppable : counted {
    std::atomic<int>* seen;
    stoppable(instance_counts* in, std::atomic<int>* seen) : counted(in), seen(seen) {}
    void work() { ++*seen; }
    void last() {
      self(this).template tell<&stoppable::work>(), self(this).stop(),
          self(this).template tell<&stoppable::work>();
    }
  };
  instance_counts all;
  std::atomic<int> seen{0};
  runtime rt(options());
  for (const thread_kind& where : thread_kinds("stoppable")) {
    seen = 0;
    const auto dead = rt.metrics().dead_letters;
    auto one = spawn_on<stoppable>(rt, where, unchecked{&all}, unchecked{&seen});
    one.tell<&stoppable::work>();
    one.tell<&stoppable::last>();
    rt.run();
    EXPECT_EQ(all.alive.load(), 0);
    EXPECT_EQ(seen.load(), 2);
    EXPECT_EQ(rt.metrics().dead_letters, dead + 1);
    one.stop();
    one.stop();
    rt.run();
  }
}

TEST_P(p14_lifetime, stop_breaks_a_cycle) {
  instance_counts all;
  runtime rt(options());
  auto one = rt.spawn<selfish>(&all);
  one.tell<&selfish::take>();
  one.stop();
  one = {};
  rt.run();
  EXPECT_EQ(all.alive.load(), 0);
}

TEST_P(p14_lifetime, actors_spawn_actors_in_constructors_and_destructors) {
  struct tree : counted {
    runtime* rt;
    int depth;
    std::vector<ref<tree>> children;
    tree(runtime* rt, instance_counts* in, int depth) : counted(in), rt(rt), depth(depth) {
      for (int i = 0; i < 2 && depth > 0; ++i)
        children.push_back(rt->spawn<tree>(rt, in, depth - 1));
    }
    ~tree() {
      // An actor that is being destroyed spawns another one, which ends at once.
      if (depth == 1) static_cast<void>(rt->spawn<tree>(rt, in, 0));
    }
  };
  instance_counts all;
  {
    runtime rt(options());
    auto root = rt.spawn<tree>(&rt, &all, 6);
    EXPECT_EQ(all.alive.load(), 127);
    rt.run();
    EXPECT_EQ(all.alive.load(), 127);
    root = {};
    rt.run();
    EXPECT_EQ(all.alive.load(), 0);
    root = rt.spawn<tree>(&rt, &all, 6);
    rt.post([&rt, &all] { static_cast<void>(rt.spawn<tree>(&rt, &all, 5)); });
  }
  EXPECT_EQ(all.alive.load(), 0);
}

TEST_P(p14_lifetime, destructors_send_spawn_and_post_while_the_runtime_ends) {
  struct busy_end : counted {
    runtime* rt;
    ref<simple> other;
    std::shared_ptr<int> token;
    busy_end(runtime* rt, instance_counts* in, ref<simple> other, std::shared_ptr<int> token)
        : counted(in), rt(rt), other(std::move(other)), token(std::move(token)) {}
    ~busy_end() {
      other.tell<&simple::work>();
      self(this).stop();
      rt->post([token = token] { static_cast<void>(token); });
      rt->spawn<simple>(in).tell<&simple::work>();
      rt->spawn<simple>(pinned("heir"), unchecked{in}).tell<&simple::work>();
      rt->spawn<simple>(on_main(), unchecked{in}).tell<&simple::work>();
    }
  };
  instance_counts all;
  auto token = std::make_shared<int>(1);
  {
    runtime rt(options());
    auto other = rt.spawn<simple>(&all);
    std::vector<ref<busy_end>> kept;
    for (int i = 0; i < 10; ++i) {
      kept.push_back(rt.spawn<busy_end>(&rt, &all, other, token));
      kept.push_back(
          rt.spawn<busy_end>(pinned("busy"), unchecked{&rt}, unchecked{&all}, other, token));
      kept.push_back(rt.spawn<busy_end>(on_main(), unchecked{&rt}, unchecked{&all}, other, token));
    }
    rt.run();
  }
  EXPECT_EQ(all.alive.load(), 0);
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(p14_lifetime,
       a_destructor_that_always_spawns_its_own_kind_does_not_keep_the_end_from_ending) {
  struct phoenix : counted {
    runtime* rt;
    phoenix(runtime* rt, instance_counts* in) : counted(in), rt(rt) {}
    void work() {}
    ~phoenix() {
      auto heir = rt->spawn<phoenix>(rt, in);
      heir.template tell<&phoenix::work>();
      static_cast<void>(rt->spawn<phoenix>(pinned("ashes"), unchecked{rt}, unchecked{in}));
    }
  };
  instance_counts all;
  {
    runtime rt(options());
    auto kept = rt.spawn<phoenix>(&rt, &all);
    auto pinned_one = rt.spawn<phoenix>(pinned("ashes"), unchecked{&rt}, unchecked{&all});
    rt.run();
  }
  EXPECT_EQ(all.alive.load(), 0);
}

TEST_P(p14_lifetime, handlers_spawn_pinned_actors_while_the_runtime_ends) {
  if (!threaded()) GTEST_SKIP() << "needs threads: no handler runs while the runtime ends";
  struct spawner {
    runtime* rt;
    std::latch* started;
    instance_counts* in;
    void go() {
      started->count_down();
      for (int i = 0; i < 20; ++i) {
        rt->spawn<simple>(pinned("thread" + std::to_string(i)), unchecked{in})
            .tell<&simple::work>();
      }
    }
  };
  instance_counts all;
  for (int round = 0; round < fewer(20); ++round) {
    std::latch started(1);
    runtime rt(options());
    rt.spawn<simple>(pinned("first"), unchecked{&all}).tell<&simple::work>();
    rt.spawn<spawner>(&rt, &started, &all).tell<&spawner::go>();
    started.wait();
  }
  EXPECT_EQ(all.alive.load(), 0);
}

TEST_P(p14_lifetime, a_large_program_is_destroyed_in_full) {
  instance_counts all;
  {
    runtime rt(options());
    std::vector<ref<simple>> kept;
    for (int i = 0; i < fewer(20000); ++i) {
      kept.push_back(rt.spawn<simple>(&all));
      kept.back().tell<&simple::work>();
    }
    rt.stop(stop_mode::discard);
    rt.run();
  }
  EXPECT_EQ(all.alive.load(), 0);
  EXPECT_EQ(all.born.load(), fewer(20000));
}

TEST_P(p14_lifetime, a_handler_of_one_runtime_may_destroy_another) {
  struct owner {
    std::unique_ptr<runtime> other;
    std::atomic<bool>* gone;
    owner(std::unique_ptr<runtime> other, std::atomic<bool>* gone)
        : other(std::move(other)), gone(gone) {}
    void finish() {
      other.reset();
      *gone = true;
    }
  };
  std::atomic<bool> gone{false};
  runtime rt(options());
  rt.spawn<owner>(std::make_unique<runtime>(options()), &gone).tell<&owner::finish>();
  rt.run();
  EXPECT_TRUE(gone.load());
}

using own_end = conformance;

TEST_P(own_end, a_runtime_that_its_own_handler_destroys_says_what_to_do) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  struct careless {
    runtime* rt;
    explicit careless(runtime* rt) : rt(rt) {}
    void finish() { delete rt; }
  };
  for (const thread_kind& where : thread_kinds("own")) {
    EXPECT_DEATH(
        {
          auto* rt = new runtime(options());
          spawn_on<careless>(*rt, where, unchecked{rt}).tell<&careless::finish>();
          rt->run();
        },
        "~runtime.*stop");
  }
  EXPECT_DEATH(
      {
        auto* rt = new runtime(options());
        rt->post([rt] { delete rt; });
        rt->run();
      },
      "~runtime.*stop");
}

TROUPE_TEST_EACH(p14_lifetime, all_settings);
struct last_words {
  std::shared_ptr<int> token;
  explicit last_words(std::shared_ptr<int> kept) : token(std::move(kept)) {}
  ~last_words() { self(this).tell<&last_words::hear>(token); }
  void hear(std::shared_ptr<int>) {}
};

TEST_P(p14_lifetime, what_a_destructor_sends_to_its_own_actor_is_a_dead_letter) {
  constexpr int many = 1000;
  auto token = std::make_shared<int>(0);
  runtime rt(options());
  struct parent {
    void spawn_and_drop(int count, runtime* home, std::shared_ptr<int> kept) {
      for (int i = 0; i < count; ++i) home->spawn<last_words>(kept).tell<&last_words::hear>(kept);
    }
  };
  rt.spawn<parent>().tell([&rt, token](parent& self) { self.spawn_and_drop(many, &rt, token); });
  for (int i = 0; i < many; ++i) rt.spawn<last_words>(token);
  rt.run();
  EXPECT_EQ(rt.metrics().dead_letters, 2u * many);
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(p14_lifetime, what_destructors_send_while_queued_mail_is_thrown_away_is_freed) {
  auto token = std::make_shared<int>(0);
  {
    runtime rt(options());
    rt.post([&rt, token] {
      std::vector<ref<last_words>> all;
      for (int i = 0; i < 100; ++i) all.push_back(rt.spawn<last_words>(token));
      for (auto& one : all) one.tell([keep = one, token](last_words& self) { self.hear(token); });
      // sleeps: so that the runtime's end begins
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    });
    // sleeps: so that the procedure has begun
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(p14_lifetime, a_handler_may_destroy_another_runtime_with_a_suspended_turn) {
  struct sleeper {
    task<> sleep(event never) { co_await never.wait(); }
  };
  struct keeper {
    std::unique_ptr<runtime> inner;
    int handled = 0;
    void drop() { inner.reset(); }
    void go_on() { ++handled; }
    void fail() {
      inner.reset();
      throw std::runtime_error("after it");
    }
    int count() { return handled; }
  };
  runtime rt(options());
  for (const bool throws : {false, true}) {
    auto inner = std::make_unique<runtime>(options());
    inner->spawn<sleeper>().tell<&sleeper::sleep>(event());
    EXPECT_THROW(inner->run(), stalled);
    auto outer = rt.spawn<keeper>();
    outer.tell([inner = std::move(inner)](keeper& self) mutable { self.inner = std::move(inner); });
    if (throws) {
      outer.tell<&keeper::fail>();
    } else {
      outer.tell<&keeper::drop>();
    }
    for (int i = 0; i < 5; ++i) outer.tell<&keeper::go_on>();
    if (throws) {
      EXPECT_THROW(rt.run(), std::runtime_error);
    } else {
      rt.run();
    }
    auto counted = outer.ask<&keeper::count>();
    rt.run();
    EXPECT_EQ(counted.get(), 5);
  }
}

// The runtime ends although a worker's queue never runs dry: each task wakes the other one before
// it waits itself.
TEST_P(p14_lifetime, tasks_that_wake_each_other_for_ever_go_with_their_runtime) {
  if (!threaded()) GTEST_SKIP() << "needs threads: nothing runs before run()";
  struct table {
    std::array<promise<>, 2> turn;
    std::atomic<int> hand_overs{0};
  } shared;
  const auto take_turns = [](table& at, std::size_t me, future<> turn) -> task<> {
    for (;;) {
      co_await turn;
      ++at.hand_overs;
      promise<> next;
      turn = next.get_future();
      at.turn[me] = std::move(next);
      at.turn[1 - me].set_value();
    }
  };
  runtime rt(options());
  rt.spawn(take_turns(shared, 0, shared.turn[0].get_future()));
  rt.spawn(take_turns(shared, 1, shared.turn[1].get_future()));
  shared.turn[0].set_value();
  while (shared.hand_overs.load() < 100) std::this_thread::yield();
}

TROUPE_TEST_EACH(own_end, each_policy);

}  // namespace
}  // namespace troupe::test
