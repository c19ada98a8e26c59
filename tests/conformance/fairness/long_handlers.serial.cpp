// P11 beside long handlers: while another worker is idle, a long handler delays no other actor.
// When all workers are in long handlers, other actors wait for the handlers that run now, not for
// several on each worker. P10: a worker that watches a long handler uses no CPU.
//
// These tests measure time, as fairness.serial.cpp does.
#include <algorithm>
#include <latch>

#include "support/conformance.hpp"
#include "support/timing.hpp"

namespace troupe::test {
namespace {

class p11_long_handlers : public conformance {};
class p10_watch : public conformance {};

// Its handler holds a worker for 100 ms; the test measures how long another actor waits meanwhile.
struct sleeper_on_cpu {
  std::atomic<bool>* entered;
  explicit sleeper_on_cpu(std::atomic<bool>* entered) : entered(entered) {}
  std::vector<ref<quiet>> to_tell;
  // The handler first blocks for so long that the worker that watches it is asleep.
  void wait_and_hold_the_worker() {
    std::this_thread::sleep_for(200ms);  // sleeps: a handler that blocks
    hold_the_worker();
  }
  void hold_the_worker() {
    for (auto& one : to_tell) one.tell<&quiet::hear>(clock::now());
    set_and_wake(*entered, true);
    busy_for(100ms);
  }
  void warm_up(int left) {
    if (left > 0) self(this).tell<&sleeper_on_cpu::warm_up>(left - 1);
  }
};

// Returns the longest wait of another actor; `arrange` decides how messages for it come to wait.
template <class Arrange>
nanoseconds worst_wait(const runtime_options& chosen, Arrange arrange) {
  std::atomic<bool> entered{false};
  std::vector<nanoseconds> waits;
  runtime rt(chosen);
  auto busy = rt.spawn<sleeper_on_cpu>(&entered);
  auto other = rt.spawn<quiet>(&waits);
  arrange(rt, busy, other, entered);
  rt.run();
  EXPECT_FALSE(waits.empty());
  return waits.empty() ? nanoseconds::max() : *std::max_element(waits.begin(), waits.end());
}

// Waits in its handler for an actor whose message waits behind this handler.
struct waits_for_another {
  std::atomic<bool>* heard;
  explicit waits_for_another(std::atomic<bool>* by) : heard(by) {}
  bool wait(nanoseconds at_most) {
    spawn([](std::atomic<bool>* hears) -> task<> {
      *hears = true;
      co_return;
    }(heard));
    const auto began = clock::now();
    // sleeps: a handler that blocks
    while (!*heard && clock::now() - began < at_most) std::this_thread::sleep_for(100us);
    return *heard;
  }
};

// No other worker is idle: each has an actor that never stops.
TEST_P(p11_long_handlers, one_actor_behind_a_long_handler_is_taken_by_a_busy_worker) {
  if (workers() < 2) GTEST_SKIP() << "needs several workers: nobody else is there";
  runtime rt(options());
  std::atomic<bool> heard{false}, over{false};
  auto goes_on = [&over]() -> task<> {
    while (!over) co_await yield();
  };
  auto blocks = [&]() -> task<> {
    for (unsigned i = 1; i < workers(); ++i) spawn(goes_on());
    co_await sleep_for(10ms);
    auto one = spawn<waits_for_another>(&heard);
    EXPECT_TRUE(co_await one.ask<&waits_for_another::wait>(5s));
    over = true;
  };
  rt.spawn(blocks());
  rt.run();
}

TEST_P(p11_long_handlers, a_long_handler_does_not_delay_actors_queued_behind_it) {
  if (workers() < 2) GTEST_SKIP() << "needs several workers: nobody else is there";
  expect_within(10ms, [&] {
    return worst_wait(options(), [](runtime& rt, auto& busy, auto& other, auto&) {
      // One actor sends both messages, so that both receivers lie in one worker's queue.
      rt.post([busy, other] {
        busy.template tell<&sleeper_on_cpu::hold_the_worker>();
        other.template tell<&quiet::hear>(clock::now());
      });
    });
  });
}

// How long a message waits that the long handler itself sends.
template <auto Hold>
nanoseconds wait_for_what_it_sent(const runtime_options& chosen) {
  return worst_wait(chosen, [](runtime& rt, auto& busy, auto& other, auto&) {
    rt.post([busy, other] {
      busy.tell([other](sleeper_on_cpu& self) {
        self.to_tell.push_back(other);
        (self.*Hold)();
        self.to_tell.clear();
      });
    });
  });
}

TEST_P(p11_long_handlers, a_long_handler_does_not_delay_what_it_sent_itself) {
  if (workers() < 2) GTEST_SKIP() << "needs several workers: nobody else is there";
  expect_within(10ms,
                [&] { return wait_for_what_it_sent<&sleeper_on_cpu::hold_the_worker>(options()); });
}

TEST_P(p11_long_handlers, a_long_handler_does_not_delay_actors_deferred_on_its_worker) {
  if (workers() < 2) GTEST_SKIP() << "needs several workers: nobody else is there";
  expect_within(10ms, [&] {
    return worst_wait(options(), [](runtime& rt, auto& busy, auto& other, auto& entered) {
      // The other actor has a turn first, so that its deactivation is deferred on this worker. Then
      // an outside thread sends to it.
      rt.post([busy, other] {
        other.template tell<&quiet::hear>(clock::now());
        busy.template tell<&sleeper_on_cpu::warm_up>(50);
        busy.template tell<&sleeper_on_cpu::hold_the_worker>();
      });
      std::thread([&entered, other, open = rt.hold()] {
        wait_for(entered, true);
        other.template tell<&quiet::hear>(clock::now());
      }).join();
    });
  });
}

TEST_P(p11_long_handlers, a_long_handler_does_not_delay_messages_from_outside) {
  if (workers() < 2) GTEST_SKIP() << "needs several workers: nobody else is there";
  expect_within(10ms, [&] {
    return worst_wait(options(), [](runtime& rt, auto& busy, auto& other, auto& entered) {
      busy.template tell<&sleeper_on_cpu::hold_the_worker>();
      std::thread([&entered, other, open = rt.hold()] {
        wait_for(entered, true);
        for (int i = 0; i < 5; ++i) {
          other.template tell<&quiet::hear>(clock::now());
          busy_for(2ms);
        }
      }).join();
    });
  });
}

// A worker that takes one of these actors is in a long handler, too. So the next idle worker must
// come for the rest.
TEST_P(p11_long_handlers, long_handlers_in_one_queue_run_on_all_workers_at_once) {
  for (int round = 0; round < fewer(40); ++round) {
    std::atomic<unsigned> entered{0};
    std::atomic<int> too_late{0};
    runtime rt(options());
    rt.post([&] {
      for (unsigned i = 0; i < workers(); ++i) {
        rt.post([&, until = clock::now() + 10s] {
          ++entered;
          while (entered.load() < workers() && clock::now() < until) std::this_thread::yield();
          if (entered.load() < workers()) ++too_late;
        });
      }
    });
    rt.run();
    ASSERT_EQ(too_late.load(), 0) << "in round " << round;
  }
}

// The same when the handler has blocked for so long that the worker that watches it hardly looks
// any more.
TEST_P(p11_long_handlers, what_a_handler_sends_after_a_long_wait_is_not_delayed) {
  if (workers() < 2) GTEST_SKIP() << "needs several workers: nobody else is there";
  expect_within(10ms, [&] {
    return wait_for_what_it_sent<&sleeper_on_cpu::wait_and_hold_the_worker>(options());
  });
}

TEST_P(p11_long_handlers, what_a_handler_posts_after_a_long_wait_is_not_delayed) {
  if (workers() < 2) GTEST_SKIP() << "needs several workers: nobody else is there";
  expect_within(10ms, [&] {
    nanoseconds wait = nanoseconds::max();
    runtime rt(options());
    rt.post([&] {
      std::this_thread::sleep_for(200ms);  // sleeps: a handler that blocks
      rt.post([&wait, posted = clock::now()] { wait = clock::now() - posted; });
      busy_for(100ms);
    });
    rt.run();
    return wait;
  });
}

TEST_P(p11_long_handlers, what_comes_from_outside_after_a_long_wait_is_not_delayed) {
  if (workers() < 2) GTEST_SKIP() << "needs several workers: nobody else is there";
  for (const bool is_deferred : {true, false}) {
    expect_within(10ms, [&] {
      return worst_wait(options(),
                        [is_deferred](runtime& rt, auto& busy, auto& other, auto& entered) {
                          rt.post([busy, other, is_deferred] {
                            if (is_deferred) other.template tell<&quiet::hear>(clock::now());
                            busy.template tell<&sleeper_on_cpu::warm_up>(50);
                            busy.template tell<&sleeper_on_cpu::wait_and_hold_the_worker>();
                          });
                          std::thread([&entered, other, open = rt.hold()] {
                            wait_for(entered, true);
                            other.template tell<&quiet::hear>(clock::now());
                          }).join();
                        });
    });
  }
}

constexpr nanoseconds long_handler = 10ms;

// Keeps its thread in long handlers until `end`.
struct occupant {
  std::atomic<bool>* end;
  std::atomic<unsigned>* entered;
  occupant(std::atomic<bool>* end, std::atomic<unsigned>* entered) : end(end), entered(entered) {}
  // No two of the actors that meet here are on one worker.
  void meet(unsigned all) {
    entered->fetch_add(1);
    while (entered->load() < all) std::this_thread::yield();
    go();
  }
  void go() {
    std::this_thread::sleep_for(long_handler);  // sleeps: a handler that blocks
    if (!end->load()) self(this).tell<&occupant::go>();
  }
};

// How long messages from outside wait while all of the pool's workers, or a pinned thread, are in
// long handlers.
nanoseconds wait_beside_occupants(const runtime_options& chosen, const thread_kind& where,
                                  unsigned occupants, bool to_new_ones) {
  std::atomic<bool> end{false};
  std::atomic<unsigned> entered{0};
  std::vector<nanoseconds> waits;
  runtime rt(chosen);
  std::vector<ref<occupant>> all;
  for (unsigned i = 0; i < occupants; ++i) {
    all.push_back(spawn_on<occupant>(rt, where, unchecked{&end}, unchecked{&entered}));
    all.back().tell<&occupant::meet>(occupants);
  }
  std::thread outside([&, open = rt.hold()] {
    while (entered.load() < occupants) std::this_thread::yield();
    auto one = spawn_on<quiet>(rt, where, unchecked{&waits});
    for (int i = 0; i < 9; ++i) {
      if (to_new_ones) one = spawn_on<quiet>(rt, where, unchecked{&waits});
      std::latch heard(1);
      one.tell<&quiet::hear>(clock::now());
      one.tell([&heard](quiet&) { heard.count_down(); });
      heard.wait();
    }
    end = true;
  });
  rt.run();
  outside.join();
  std::sort(waits.begin(), waits.end());
  return waits[waits.size() / 2];
}

// At best a message waits for the rest of one handler. The test allows three, because on a pinned
// thread and in a queue other actors are in front.
TEST_P(p11_long_handlers, messages_from_outside_do_not_wait_for_several_handlers_of_each_worker) {
  for (const bool to_new_ones : {true, false}) {
    expect_within(3 * long_handler, [&] {
      return wait_beside_occupants(options(), spawn_options{}, workers(), to_new_ones);
    });
  }
}

TEST_P(p11_long_handlers,
       messages_from_outside_do_not_wait_for_several_handlers_of_a_pinned_thread) {
  for (const bool to_new_ones : {true, false}) {
    expect_within(3 * long_handler, [&] {
      return wait_beside_occupants(options(), pinned("occupied"), 1, to_new_ones);
    });
  }
}

// The runtime does not know yet how slow the actor's handlers are: the actors before it were quick,
// and many messages wait for it. The test allows as many handlers as come before the second look at
// the clock, if the first look came after a quick one (the constructor, on a pinned thread).
TEST_P(p11_long_handlers, a_turn_ends_with_the_first_slow_handlers) {
  struct worker_on_it {
    void quick() {}
    void slow() { std::this_thread::sleep_for(long_handler); }  // sleeps: a handler that blocks
  };
  runtime_options chosen = options();
  chosen.workers = 1;
  for (const thread_kind& where : thread_kinds("slow")) {
    expect_within(4 * long_handler, [&] {
      std::vector<nanoseconds> waits;
      runtime rt(chosen);
      auto first = spawn_on<worker_on_it>(rt, where), quick = spawn_on<worker_on_it>(rt, where);
      auto slow = spawn_on<worker_on_it>(rt, where);
      auto other = spawn_on<quiet>(rt, where, unchecked{&waits});
      // A handler of the same thread sends the messages, so that all of them are there before the
      // turn.
      first.tell([quick, slow, other](worker_on_it&) {
        for (int i = 0; i < 1000; ++i) quick.tell<&worker_on_it::quick>();
        quick.tell([slow, other](worker_on_it&) {
          for (int i = 0; i < 16; ++i) slow.tell<&worker_on_it::slow>();
          other.tell<&quiet::hear>(clock::now());
        });
      });
      rt.run();
      return waits.at(0);
    });
  }
}

// The CPU time of a second in which one worker waits in a handler and all other threads have
// nothing to do.
TEST_P(p10_watch, beside_a_handler_that_blocks_less_than_half_a_percent_of_a_core_is_used) {
  std::chrono::microseconds best = 1s;
  const auto bound = std::chrono::microseconds(5'000);
  for (int attempt = 0; attempt < attempts_max && best > bound; ++attempt) {
    struct blocked {
      int others = 0;
      void other() { ++others; }
    };
    runtime rt(options());
    std::latch entered(1), leave(1);
    auto one = rt.spawn<blocked>();
    one.tell([&](blocked&) {
      entered.count_down();
      leave.wait();
    });
    std::thread outside([&] {
      entered.wait();
      one.tell<&blocked::other>();  // no other worker can handle a message for the same actor
      const auto before = cpu_time_used();
      std::this_thread::sleep_for(1s);  // sleeps: the time that is measured
      best = std::min(best, cpu_time_used() - before);
      leave.count_down();
    });
    rt.run();
    outside.join();
  }
  RecordProperty("microseconds", std::to_string(best.count()));
  // Sanitizers have threads of their own, which use CPU time.
  EXPECT_LE(best.count(), (slow ? 10 * bound : bound).count()) << "microseconds";
}

TROUPE_TEST_EACH(p11_long_handlers, threaded_settings);
TROUPE_TEST_EACH(p10_watch, threaded_settings);

}  // namespace
}  // namespace troupe::test
