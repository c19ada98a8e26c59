// P3: no message is lost or handled twice while its receiver lives; one to a stopped actor is a
// dead letter.
#include <mutex>
#include <random>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

class p3_delivery : public conformance {};

// Walks tokens through a random graph; each visit is ticked off in a table.
struct node {
  std::vector<std::atomic<std::uint8_t>>* ticks;
  std::vector<ref<node>> out;
  std::minstd_rand random;
  node(std::vector<std::atomic<std::uint8_t>>* ticks, unsigned seed) : ticks(ticks), random(seed) {}
  void link(std::vector<ref<node>> to) { out = std::move(to); }
  void visit(std::unique_ptr<std::size_t> token, int step, int steps) {
    (*ticks)[*token * static_cast<std::size_t>(steps) + static_cast<std::size_t>(step)] += 1;
    // Some work, so that queues build up and searchers steal.
    volatile unsigned sink = 0;
    for (unsigned i = 0; i < random() % 64; ++i) sink = sink + i;
    if (step + 1 < steps)
      out[random() % out.size()].tell<&node::visit>(std::move(token), step + 1, steps);
  }
  void forget() { out.clear(); }
};

TEST_P(p3_delivery, every_message_through_a_random_graph_is_handled_exactly_once) {
  const std::size_t nodes = 300;
  const auto tokens = static_cast<std::size_t>(fewer(600));
  const int steps = 200;
  std::vector<std::atomic<std::uint8_t>> ticks(tokens * static_cast<std::size_t>(steps));
  runtime rt(options());
  std::vector<ref<node>> all;
  std::mt19937 random(7);
  for (unsigned i = 0; i < nodes; ++i) {
    if (i % 97 == 5) {
      all.push_back(rt.spawn<node>(pinned("node"), unchecked{&ticks}, i + 1));
    } else if (i % 97 == 6) {
      all.push_back(rt.spawn<node>(on_main(), unchecked{&ticks}, i + 1));
    } else {
      all.push_back(rt.spawn<node>(&ticks, i + 1));
    }
  }
  for (auto& one : all) {
    std::vector<ref<node>> to;
    for (int i = 0; i < 5; ++i) to.push_back(all[random() % nodes]);
    one.tell<&node::link>(std::move(to));
  }
  rt.run();
  std::thread outside([&, open = rt.hold()] {
    for (std::size_t t = 0; t < tokens / 2; ++t)
      all[t % nodes].tell<&node::visit>(std::make_unique<std::size_t>(t), 0, steps);
  });
  rt.post([&] {
    for (std::size_t t = tokens / 2; t < tokens; ++t) {
      all[0].tell<&node::visit>(std::make_unique<std::size_t>(t), 0, steps);
    }
  });
  rt.run();
  outside.join();
  std::size_t lost = 0, twice = 0;
  for (const auto& tick : ticks) {
    lost += tick.load() == 0 ? 1 : 0;
    twice += tick.load() > 1 ? 1 : 0;
  }
  EXPECT_EQ(lost, 0u);
  EXPECT_EQ(twice, 0u);
  EXPECT_EQ(rt.metrics().dead_letters, 0u);
  for (auto& one : all) one.tell<&node::forget>();
  rt.run();
}

struct worker_actor {
  int done = 0;
  void work() { ++done; }
  void work_with(std::shared_ptr<int> token) { done += *token; }
};

TEST_P(p3_delivery, messages_to_a_stopped_actor_are_counted_and_observed) {
  std::mutex mutex;
  std::vector<std::string> seen;
  runtime_options chosen = options();
  chosen.on_dead_letter = [&](const dead_letter& one) {
    std::lock_guard lock(mutex);
    seen.push_back(one.actor + " " + one.method);
  };
  runtime rt(chosen);
  auto one = rt.spawn<worker_actor>();
  one.tell<&worker_actor::work>();
  one.stop();
  auto token = std::make_shared<int>(1);
  one.tell<&worker_actor::work>();
  one.tell<&worker_actor::work_with>(token);
  one.tell([token](worker_actor&) {});
  rt.run();
  EXPECT_EQ(rt.metrics().dead_letters, 3u);
  EXPECT_EQ(token.use_count(), 1) << "a dead letter's arguments are destroyed";
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_NE(seen[0].find("worker_actor"), std::string::npos);
  EXPECT_NE(seen[0].find("work"), std::string::npos);
  EXPECT_NE(seen[1].find("work_with"), std::string::npos);
  one.tell<&worker_actor::work>();
  rt.run();
  EXPECT_EQ(rt.metrics().dead_letters, 4u);
}

TEST_P(p3_delivery, an_observer_of_dead_letters_may_tell_an_actor) {
  struct log {
    std::atomic<int>* lines;
    explicit log(std::atomic<int>* lines) : lines(lines) {}
    void line(std::string) { ++*lines; }
  };
  std::atomic<int> lines{0};
  ref<log> to;
  {
    // `to` is assigned before the first dead letter.
    runtime_options chosen = options();
    chosen.on_dead_letter = [&to](const dead_letter& one) {
      if (to) to.tell<&log::line>(one.method);
    };
    runtime rt(chosen);
    to = rt.spawn<log>(&lines);
    auto gone = rt.spawn<worker_actor>();
    gone.stop();
    gone.tell<&worker_actor::work>();
    rt.run();
    EXPECT_EQ(lines.load(), 1);
    // Messages that become dead letters while the runtime ends, when the observer's actor takes no
    // more: the observer must not send about its own dead letters without end.
    auto late = rt.spawn<worker_actor>(on_main());
    late.tell<&worker_actor::work>();
  }
}

TEST_P(p3_delivery, messages_left_at_the_end_of_the_runtime_are_freed) {
  auto token = std::make_shared<int>(1);
  {
    runtime rt(options());
    auto one = rt.spawn<worker_actor>(on_main());
    for (int i = 0; i < 100; ++i) one.tell<&worker_actor::work_with>(token);
    auto two = rt.spawn<worker_actor>();
    for (int i = 0; i < 100; ++i) two.tell<&worker_actor::work_with>(token);
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(p3_delivery, telling_an_actor_of_a_runtime_that_has_gone_is_harmless) {
  auto token = std::make_shared<int>(1);
  ref<worker_actor> one, pinned_one;
  {
    runtime rt(options());
    one = rt.spawn<worker_actor>();
    pinned_one = rt.spawn<worker_actor>(pinned("late"));
    one.tell<&worker_actor::work>();
    rt.run();
  }
  one.tell<&worker_actor::work_with>(token);
  pinned_one.tell<&worker_actor::work_with>(token);
  EXPECT_EQ(token.use_count(), 1);
  auto copy = one;
  one.stop();
  one = {};
  copy.tell<&worker_actor::work>();
}

TEST_P(p3_delivery, a_burst_from_every_side_while_the_actor_deactivates_loses_nothing) {
  // Single messages with pauses between them: almost every one wakes the actor.
  struct counter {
    std::atomic<int>* seen;
    explicit counter(std::atomic<int>* seen) : seen(seen) {}
    void add() { seen->fetch_add(1), seen->notify_all(); }
  };
  std::atomic<int> seen{0};
  runtime rt(options());
  auto one = rt.spawn<counter>(&seen);
  const int rounds = fewer(3000);
  std::vector<std::thread> outside;
  for (int t = 0; t < 2; ++t) {
    outside.emplace_back([&, t, open = rt.hold()] {
      for (int i = 0; i < rounds; ++i) {
        one.tell<&counter::add>();
        if (i % 50 == t) std::this_thread::yield();
        if (threaded() && i % 20 == 0) {
          const int now = seen.load();
          if (now < i) seen.wait(now);
        }
      }
    });
  }
  rt.run();
  for (auto& thread : outside) thread.join();
  EXPECT_EQ(seen.load(), 2 * rounds);
}

TROUPE_TEST_EACH(p3_delivery, all_settings);

}  // namespace
}  // namespace troupe::test
