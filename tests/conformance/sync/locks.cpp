// Locks that suspend: mutexes, semaphores, conditions, barriers, once; in order, given up, by plain
// threads, and in cycles.
#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class locks : public conformance {};

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

struct shared_log {
  mutex busy;
  std::atomic<int> inside{0}, most_inside{0};
  std::vector<int> order;
  void enter() {
    const int now = ++inside;
    if (now > most_inside) most_inside = now;
  }
  void leave() { --inside; }
};

task<> hold_for_a_while(std::shared_ptr<shared_log> log, int number) {
  const auto held = co_await log->busy.lock();
  log->enter();
  log->order.push_back(number);
  co_await sleep_for(100us);
  log->leave();
}

TEST_P(locks, one_party_at_a_time_holds_a_mutex) {
  runtime rt(options());
  auto log = std::make_shared<shared_log>();
  for (int i = 0; i < 50; ++i) rt.spawn(hold_for_a_while(log, i));
  rt.run();
  EXPECT_EQ(log->most_inside.load(), 1);
  EXPECT_EQ(log->order.size(), 50U);
  EXPECT_FALSE(log->busy.is_locked());
}

TEST_P(locks, parties_get_a_mutex_in_the_order_in_which_they_came) {
  runtime rt(options());
  auto log = std::make_shared<shared_log>();
  const auto all = [log]() -> task<> {
    std::vector<task<>> parties;
    for (int i = 0; i < 20; ++i) parties.push_back(hold_for_a_while(log, i));
    co_await when_all(std::move(parties));
  };
  auto done = rt.spawn(all());
  rt.run();
  std::vector<int> sorted = log->order;
  std::ranges::sort(sorted);
  EXPECT_EQ(log->order, sorted);
}

TEST_P(locks, a_party_that_gives_up_leaves_the_lock_to_the_next) {
  runtime rt(options());
  auto log = std::make_shared<shared_log>();
  std::string ends;
  const auto gives_up = [&, log]() -> task<> {
    auto held = co_await log->busy.lock();
    try {
      static_cast<void>(co_await log->busy.lock().timeout(1ms));
    } catch (const timed_out&) {
      ends += "timed out ";
    }
    EXPECT_FALSE(log->busy.try_lock());
    held.unlock();
    EXPECT_TRUE(log->busy.try_lock());
    const auto again = co_await log->busy.lock();
    ends += "again";
  };
  auto done = rt.spawn(gives_up());
  rt.run();
  done.get();
  EXPECT_EQ(ends, "timed out again");
}

task<> write_and_read(std::shared_ptr<shared_mutex> lock, std::shared_ptr<std::atomic<int>> readers,
                      std::shared_ptr<std::atomic<bool>> writing, bool writes) {
  for (int i = 0; i < 20; ++i) {
    if (writes) {
      const auto held = co_await lock->lock();
      EXPECT_EQ(readers->load(), 0);
      EXPECT_FALSE(writing->exchange(true));
      co_await yield();
      writing->store(false);
    } else {
      const auto held = co_await lock->lock_shared();
      ++*readers;
      EXPECT_FALSE(writing->load());
      co_await yield();
      --*readers;
    }
  }
}

TEST_P(locks, readers_are_inside_together_and_a_writer_alone) {
  runtime rt(options());
  auto lock = std::make_shared<shared_mutex>();
  auto readers = std::make_shared<std::atomic<int>>(0);
  auto writing = std::make_shared<std::atomic<bool>>(false);
  for (int i = 0; i < 8; ++i) rt.spawn(write_and_read(lock, readers, writing, i % 4 == 0));
  rt.run();
  auto first = lock->try_lock_shared(), second = lock->try_lock_shared();
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(lock->try_lock());
  first->unlock();
  second->unlock();
  EXPECT_TRUE(lock->try_lock());
}

TEST_P(locks, readers_that_come_behind_a_waiting_writer_do_not_keep_it_out) {
  runtime rt(options());
  shared_mutex lock;
  std::string order;
  const auto all = [&]() -> task<> {
    auto reads = co_await lock.lock_shared();
    const auto write = [&]() -> task<> {
      const auto held = co_await lock.lock();
      order += 'w';
    };
    const auto read = [&]() -> task<> {
      const auto held = co_await lock.lock_shared();
      order += 'r';
    };
    const auto release = [&]() -> task<> {
      reads.unlock();
      co_return;
    };
    co_await when_all(write(), read(), read(), release());
  };
  auto done = rt.spawn(all());
  rt.run();
  done.get();
  EXPECT_EQ(order, "wrr");
}

TEST_P(locks, a_semaphore_limits_how_many_are_inside) {
  runtime rt(options());
  auto log = std::make_shared<shared_log>();
  auto three = std::make_shared<semaphore>(3);
  const auto party = [](std::shared_ptr<semaphore> permits,
                        std::shared_ptr<shared_log> within) -> task<> {
    const auto permit = co_await permits->acquire();
    within->enter();
    co_await sleep_for(100us);
    within->leave();
  };
  for (int i = 0; i < 30; ++i) rt.spawn(party(three, log));
  rt.run();
  EXPECT_EQ(log->most_inside.load(), 3);
  EXPECT_EQ(three->available(), 3U);
}

TEST_P(locks, a_party_that_wants_many_permits_is_not_overtaken) {
  runtime rt(options());
  semaphore four(4);
  std::string order;
  const auto all = [&]() -> task<> {
    auto two = co_await four.acquire(2);
    const auto wants = [&](std::uint64_t count, char name) -> task<> {
      const auto permit = co_await four.acquire(count);
      order += name;
    };
    const auto release = [&]() -> task<> {
      EXPECT_FALSE(four.try_acquire(1));  // one that wants many waits
      two.release();
      co_return;
    };
    co_await when_all(wants(4, 'm'), wants(1, 'f'), release());
  };
  auto done = rt.spawn(all());
  rt.run();
  done.get();
  EXPECT_EQ(order, "mf");
}

TEST_P(locks, when_a_party_that_wants_many_gives_up_those_behind_it_continue) {
  runtime rt(options());
  semaphore two(2);
  bool got_one = false, gave_up = false;
  const auto all = [&]() -> task<> {
    const auto one = co_await two.acquire();
    const auto wants_two = [&]() -> task<> {
      try {
        static_cast<void>(co_await two.acquire(2).timeout(1ms));
      } catch (const timed_out&) {
        gave_up = true;
      }
    };
    const auto wants_one = [&]() -> task<> {
      const auto permit = co_await two.acquire();
      got_one = true;
    };
    co_await when_all(wants_two(), wants_one());
  };
  auto done = rt.spawn(all());
  rt.run();
  done.get();
  EXPECT_TRUE(gave_up && got_one);
}

struct bounded_box {
  mutex busy;
  condition changed;
  int filled = 0;
};

TEST_P(locks, a_condition_wakes_those_whose_predicate_came_true) {
  runtime rt(options());
  auto box = std::make_shared<bounded_box>();
  std::atomic<int> taken{0};
  const auto takes = [&](std::shared_ptr<bounded_box> from) -> task<> {
    for (int i = 0; i < 50; ++i) {
      auto held = co_await from->busy.lock();
      co_await from->changed.wait(held, [&] { return from->filled > 0; });
      --from->filled;
      ++taken;
    }
  };
  const auto fills = [](std::shared_ptr<bounded_box> to) -> task<> {
    for (int i = 0; i < 100; ++i) {
      const auto held = co_await to->busy.lock();
      ++to->filled;
      i % 2 == 0 ? to->changed.notify_one() : to->changed.notify_all();
    }
  };
  auto one = rt.spawn(takes(box)), two = rt.spawn(takes(box));
  rt.spawn(fills(box));
  rt.run();
  EXPECT_EQ(taken.load(), 100);
  EXPECT_EQ(box->filled, 0);
}

TEST_P(locks, a_wait_for_a_condition_that_ends_early_holds_nothing) {
  runtime rt(options());
  bounded_box box;
  bool held_after = true, free_after = false;
  const auto waits = [&]() -> task<> {
    auto held = co_await box.busy.lock();
    try {
      co_await box.changed.wait(held).timeout(1ms);
    } catch (const timed_out&) {
      held_after = static_cast<bool>(held);
      free_after = box.busy.try_lock().has_value();
    }
  };
  auto done = rt.spawn(waits());
  rt.run();
  done.get();
  EXPECT_FALSE(held_after);
  EXPECT_TRUE(free_after);
}

TEST_P(locks, a_barrier_lets_each_round_pass_together) {
  runtime rt(options());
  auto meet = std::make_shared<barrier>(4);
  std::atomic<int> arrived{0}, last{0};
  const auto party = [&](std::shared_ptr<barrier> at) -> task<> {
    for (int round = 1; round <= 10; ++round) {
      ++arrived;
      if (co_await at->arrive()) ++last;
      EXPECT_GE(arrived.load(), 4 * round);
    }
  };
  for (int i = 0; i < 4; ++i) rt.spawn(party(meet));
  rt.run();
  EXPECT_EQ(last.load(), 10);
}

TEST_P(locks, what_is_done_once_is_done_by_one_party_and_again_after_a_failure) {
  runtime rt(options());
  auto opened = std::make_shared<once>();
  std::atomic<int> tries{0}, failures{0};
  const auto party = [&](std::shared_ptr<once> of) -> task<> {
    const auto open = [&]() -> task<> {
      co_await yield();
      if (++tries == 1) throw std::runtime_error("not yet");
    };
    try {
      co_await of->call(open);
    } catch (const std::runtime_error&) {
      ++failures;
    }
  };
  for (int i = 0; i < 8; ++i) rt.spawn(party(opened));
  rt.run();
  EXPECT_EQ(tries.load(), 2);
  EXPECT_EQ(failures.load(), 1);
  EXPECT_TRUE(opened->is_done());
}

TEST(locks_of_threads, plain_threads_block) {
  mutex busy;
  semaphore two(2);
  std::atomic<int> inside{0}, most{0};
  int count = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 200; ++n) {
          const auto permit = two.acquire().get();
          const int now = ++inside;
          if (now > most) most = now;
          {
            const auto held = busy.lock().get();
            ++count;
          }
          --inside;
        }
      });
    }
  }
  EXPECT_EQ(count, 800);
  EXPECT_LE(most.load(), 2);
  const auto held = busy.lock().get();
  EXPECT_THROW(static_cast<void>(busy.lock().timeout(1ms).get()), timed_out);
}

struct pair_of_locks {
  mutex first, second;
};

task<> lock_both(mutex& one, mutex& other, event go, std::string& text) {
  const auto held = co_await one.lock();
  co_await go.wait();
  try {
    const auto both = co_await other.lock();
  } catch (const deadlock& error) {
    text = error.what();
  }
}

TEST_P(locks, a_circle_of_mutexes_is_a_deadlock_with_its_chain) {
  runtime rt(options());
  pair_of_locks both;
  event go;
  std::string one, two;
  rt.spawn(lock_both(both.first, both.second, go, one));
  rt.spawn(lock_both(both.second, both.first, go, two));
  const auto start = [&]() -> task<> {
    while (!both.first.is_locked() || !both.second.is_locked()) co_await yield();
    go.set();
  };
  auto started = rt.spawn(start());
  rt.run();
  EXPECT_NE(one.empty(), two.empty());  // one is told, and the other gets its lock
  const std::string& text = one + two;
  EXPECT_TRUE(has(text, "deadlock")) << text;
  EXPECT_TRUE(has(text, "waits for a lock of")) << text;
  EXPECT_TRUE(has(text, "a lock held by ")) << text;
  EXPECT_TRUE(has(text, "locks.cpp:")) << text;
  EXPECT_FALSE(both.first.is_locked() || both.second.is_locked());
}

// A task that sleeps has no actor, and gets another one afterwards.
TEST_P(locks, a_circle_of_mutexes_is_found_after_their_holders_have_slept) {
  runtime rt(options());
  pair_of_locks both;
  std::atomic<int> told{0}, got{0};
  const auto takes = [&](mutex& one, mutex& other) -> task<> {
    const auto held = co_await one.lock();
    co_await sleep_for(1ms);
    try {
      const auto second = co_await other.lock();
      ++got;
    } catch (const deadlock&) {
      ++told;
    }
  };
  rt.spawn(takes(both.first, both.second));
  rt.spawn(takes(both.second, both.first));
  rt.run();
  EXPECT_EQ(told.load() + got.load(), 2);
  EXPECT_GE(got.load(), 1);
}

// A trace goes with a call and ends nothing.
TEST_P(locks, a_circle_of_mutexes_within_traces_is_a_deadlock) {
  runtime rt(options());
  pair_of_locks both;
  event go;
  std::string one, two;
  const auto traced = [&](mutex& first, mutex& second, std::string& text) -> task<> {
    const auto held = co_await first.lock();
    const auto rest = [&]() -> task<> {
      co_await go.wait();
      const auto last = co_await second.lock();
    };
    try {
      co_await with_trace(trace_context::begin(), rest);
    } catch (const deadlock& error) {
      text = error.what();
    }
  };
  rt.spawn(traced(both.first, both.second, one));
  rt.spawn(traced(both.second, both.first, two));
  const auto start = [&]() -> task<> {
    while (!both.first.is_locked() || !both.second.is_locked()) co_await yield();
    go.set();
  };
  auto started = rt.spawn(start());
  rt.run();
  EXPECT_NE(one.empty(), two.empty());
  EXPECT_TRUE(has(one + two, "waits for a lock of")) << one + two;
}

TEST_P(locks, a_second_lock_by_its_holder_is_a_deadlock) {
  runtime rt(options());
  mutex busy;
  bool told = false;
  const auto twice = [&]() -> task<> {
    const auto held = co_await busy.lock();
    try {
      const auto again = co_await busy.lock();
    } catch (const deadlock&) {
      told = true;
    }
  };
  auto done = rt.spawn(twice());
  rt.run();
  EXPECT_TRUE(told);
}

// An ask and a mutex in one cycle: the actor waits for the lock, its asker holds it.
struct needs_lock {
  std::shared_ptr<mutex> busy;
  task<int> work() {
    const auto held = co_await busy->lock();
    co_return 1;
  }
};

TEST_P(locks, a_circle_of_an_ask_and_a_mutex_is_a_deadlock) {
  runtime rt(options());
  auto busy = std::make_shared<mutex>();
  const auto actor = rt.spawn<needs_lock>(busy);
  std::atomic<int> told{0};
  const auto asks = [&](std::shared_ptr<mutex> lock, ref<needs_lock> of) -> task<> {
    const auto held = co_await lock->lock();
    try {
      co_await of.ask<&needs_lock::work>();
    } catch (const deadlock&) {
      ++told;
    }
  };
  auto done = rt.spawn(asks(busy, actor));
  rt.run();
  EXPECT_EQ(told.load(), 1);
}

TEST_P(locks, a_guard_that_was_moved_away_closes_no_circle) {
  runtime rt(options());
  auto busy = std::make_shared<mutex>();
  event go;
  const auto releases_later = [](mutex::guard held, event when) -> task<> {
    co_await when.wait();
    held.unlock();
  };
  std::atomic<bool> got{false};
  const auto locks_again = [&](std::shared_ptr<mutex> lock) -> task<> {
    auto held = co_await lock->lock();
    rt.spawn(releases_later(std::move(held), go));
    const auto opens = [&]() -> task<> {
      co_await sleep_for(250ms);
      go.set();
    };
    rt.spawn(opens());
    const auto again = co_await lock->lock();
    got = true;
  };
  auto done = rt.spawn(locks_again(busy));
  rt.run();
  done.get();
  EXPECT_TRUE(got);
}

TEST_P(locks, a_stall_names_the_holder_of_the_lock) {
  runtime rt(options());
  auto busy = std::make_shared<mutex>();
  event never;
  const auto holds = [](std::shared_ptr<mutex> lock, event until) -> task<> {
    const auto held = co_await lock->lock();
    co_await until.wait();
  };
  const auto waits = [](std::shared_ptr<mutex> lock) -> task<> {
    while (!lock->is_locked()) co_await yield();
    const auto held = co_await lock->lock();
  };
  auto one = rt.spawn(holds(busy, never)), two = rt.spawn(waits(busy));
  std::string text;
  try {
    rt.run();
  } catch (const stalled& error) {
    text = error.what();
  }
  EXPECT_TRUE(has(text, "a lock held by ")) << text;
  EXPECT_TRUE(has(text, "locks.cpp:")) << text;
  never.set();
  rt.run();
}

}  // namespace

TROUPE_TEST_EACH(locks, all_settings);

}  // namespace troupe::test
