// Scopes that use all workers: children that are spawned, scopes of plain threads, and the results
// of children in order.
#include <atomic>
#include <memory>
#include <numeric>
#include <stop_token>
#include <thread>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class parallel_scopes : public conformance {};

template <class Made>
auto value_of(runtime& rt, Made&& made) {
  auto later = rt.spawn(std::forward<Made>(made));
  rt.run();
  return later.get();
}

task<int> number(int n, std::chrono::nanoseconds after = {}) {
  counted here;
  if (after.count() > 0) co_await sleep_for(after);
  co_return n;
}
task<> fail(const char* text, std::chrono::nanoseconds after = {}) {
  counted here;
  if (after.count() > 0) co_await sleep_for(after);
  throw std::runtime_error(text);
}
task<> sleep_long(std::atomic<int>& cancelled_ones) {
  counted here;
  try {
    co_await sleep_for(1h);
  } catch (const cancelled&) {
    ++cancelled_ones;
    throw;
  }
}

template <class Body>
std::string error_on_thread(runtime& rt, Body&& body) {
  try {
    scope(rt, std::forward<Body>(body));
  } catch (const std::exception& e) {
    return e.what();
  }
  return "none";
}

TEST_P(parallel_scopes, a_plain_thread_blocks_until_all_have_ended) {
  runtime rt(options());
  int sum = 0;
  scope(rt, [&](task_scope& s) {
    for (int n = 1; n <= 20; ++n) {
      s.spawn([&sum, n]() -> task<> {
        counted here;
        co_await sleep_for(n % 3 * 1ms);
        sum += n;
      });
    }
  });
  EXPECT_EQ(sum, 210);
  EXPECT_EQ(live.load(), 0);
  EXPECT_EQ(scope(rt,
                  [&](task_scope& s) -> task<int> {
                    auto late = s.spawn_parallel(number(4, 1ms));
                    const int value = co_await late;
                    co_return value + 3;
                  }),
            7);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(parallel_scopes, a_plain_thread_gets_the_first_failure) {
  runtime rt(options());
  std::atomic<int> cancelled_ones = 0;
  EXPECT_EQ(error_on_thread(rt,
                            [&](task_scope& s) {
                              for (int i = 0; i < 3; ++i) s.spawn(sleep_long(cancelled_ones));
                              for (int i = 0; i < 3; ++i)
                                s.spawn_parallel(sleep_long(cancelled_ones));
                              s.spawn(fail("first", 20ms));
                            }),
            "first");
  EXPECT_EQ(live.load(), 0);
  EXPECT_LE(cancelled_ones, 6);
  EXPECT_GE(cancelled_ones, 3);
  std::vector<std::exception_ptr> failures;
  EXPECT_THROW(scope(rt, failures, [](task_scope& s) { s.spawn(fail("one")); }),
               std::runtime_error);
  EXPECT_EQ(failures.size(), 1u);
}

TEST_P(parallel_scopes, a_handler_may_not_block_for_a_scope) {
  runtime rt(options());
  EXPECT_TRUE(value_of(rt, [&rt]() -> task<bool> {
    bool refused = false;
    try {
      scope(rt, [](task_scope&) {});
    } catch (const usage_error&) {
      refused = true;
    }
    co_return refused;
  }));
}

struct there {
  int answer() { return 5; }
};

// Only run() of this thread lets the actor answer, so the wait is refused; the child ends first.
TEST_P(parallel_scopes, a_scope_that_needs_this_thread_is_refused) {
  if (!threaded()) GTEST_SKIP() << "needs threads: there the scope calls run()";
  runtime rt(options());
  auto here = rt.spawn<there>(on_main());
  bool ended = false;
  EXPECT_THROW(scope(rt,
                     [&](task_scope& s) {
                       s.spawn([&]() -> task<> {
                         counted within;
                         try {
                           static_cast<void>(co_await here.ask<&there::answer>());
                         } catch (const cancelled&) {
                           ended = true;
                           throw;
                         }
                       });
                     }),
               error);
  EXPECT_TRUE(ended);
  EXPECT_EQ(live.load(), 0);
}

// The scope's actor answers nothing before its child has ended, which asks it.
struct asks_itself {
  ref<asks_itself> own;
  int answer() { return 5; }
  void begin(ref<asks_itself> self) { own = std::move(self); }
  task<std::string> run(bool parallel) {
    std::string text = "none";
    try {
      co_await scope([this, parallel](task_scope& s) {
        const auto asks = [](ref<asks_itself> to) -> task<> {
          counted here;
          static_cast<void>(co_await to.ask<&asks_itself::answer>());
        };
        parallel ? s.spawn_parallel(asks, own) : s.spawn(asks, own);
      });
    } catch (const deadlock&) {
      text = "deadlock";
    }
    own = {};
    co_return text;
  }
};

TEST_P(parallel_scopes, a_circle_through_a_child_is_a_deadlock) {
  runtime rt(options());
  for (const bool parallel : {false, true}) {
    auto one = rt.spawn<asks_itself>();
    one.tell<&asks_itself::begin>(one);
    auto text = one.ask<&asks_itself::run>(parallel);
    rt.run();
    EXPECT_EQ(text.get(), "deadlock");
  }
  EXPECT_EQ(live.load(), 0);
}

TEST_P(parallel_scopes, parallel_children_run_at_the_same_time) {
  if (!threaded() || GetParam().workers < 2)
    GTEST_SKIP() << "needs several workers: one thread runs all";
  runtime rt(options());
  std::atomic<int> begun = 0;
  scope(rt, [&](task_scope& s) {
    for (int i = 0; i < 2; ++i) {
      s.spawn_parallel([&begun]() -> task<> {
        ++begun;
        while (begun < 2) std::this_thread::yield();
        co_return;
      });
    }
  });
  EXPECT_EQ(begun, 2);
}

TEST_P(parallel_scopes, parallel_children_are_limited) {
  runtime rt(options());
  std::atomic<int> now = 0, most = 0, all = 0;
  scope(rt, [&](task_scope& s) {
    s.limit(3);
    for (int i = 0; i < 30; ++i) {
      s.spawn_parallel(
          [&](int n) -> task<> {
            counted here;
            const int seen = ++now;
            for (int known = most; known < seen && !most.compare_exchange_weak(known, seen);) {
            }
            if (n % 2 == 0) co_await sleep_for(100us);
            co_await yield();
            --now;
            ++all;
          },
          i);
    }
  });
  EXPECT_EQ(all, 30);
  EXPECT_LE(most, 3);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(parallel_scopes, a_parallel_failure_cancels_the_others) {
  runtime rt(options());
  std::atomic<int> cancelled_ones = 0;
  EXPECT_EQ(error_on_thread(rt,
                            [&](task_scope& s) {
                              s.spawn(sleep_long(cancelled_ones));
                              s.spawn_parallel(sleep_long(cancelled_ones));
                              s.spawn_parallel(fail("enough", 5ms));
                            }),
            "enough");
  EXPECT_EQ(live.load(), 0);
}

// Refers to what only the scope keeps, also after it was cancelled.
TEST_P(parallel_scopes, no_parallel_child_outlives_the_scope) {
  runtime rt(options());
  for (int i = 0; i < fewer(100); ++i) {
    value_of(rt, []() -> task<int> {
      {
        const auto kept = std::make_unique<std::atomic<int>>(0);
        try {
          co_await scope([&kept](task_scope& s) -> task<> {
            for (int n = 0; n < 8; ++n) {
              s.spawn_parallel([&kept]() -> task<> {
                counted here;
                try {
                  co_await sleep_for(1h);
                } catch (const cancelled&) {
                  ++*kept;
                }
                ++*kept;
              });
            }
            co_await sleep_for(50us);
            s.cancel();
          });
        } catch (const cancelled&) {
        }
      }
      co_return 0;
    });
    EXPECT_EQ(live.load(), 0);
  }
}

TEST_P(parallel_scopes, a_deadline_holds_for_parallel_children) {
  runtime rt(options());
  const bool limited = value_of(rt, []() -> task<bool> {
    std::atomic<bool> seen = false;
    bool timed = true;
    const auto all = [&]() -> task<> {
      co_await scope([&](task_scope& s) {
        s.spawn_parallel([&seen]() -> task<> {
          seen = this_call::remaining() <= 1h;
          co_return;
        });
        s.spawn_parallel([]() -> task<> {
          counted here;
          co_await sleep_for(2h);
        });
      });
    };
    // On a busy machine the time may be over before the first child has begun.
    for (auto limit = 20ms; timed && !seen; limit *= 2) {
      timed = false;
      try {
        auto within = all();
        co_await with_deadline(limit, std::move(within));
      } catch (const timed_out&) {
        timed = true;
      }
    }
    co_return timed;
  });
  EXPECT_TRUE(limited);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(parallel_scopes, only_others_than_parallel_children_add_children) {
  runtime rt(options());
  bool refused = false;
  scope(rt, [&](task_scope& s) {
    s.spawn_parallel([&]() -> task<> {
      try {
        s.spawn(fail("never"));
      } catch (const usage_error&) {
        refused = true;
      }
      co_return;
    });
  });
  EXPECT_TRUE(refused);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(parallel_scopes, the_end_of_the_runtime_ends_them) {
  for (int i = 0; i < 10; ++i) {
    runtime rt(options());
    rt.spawn([]() -> task<> {
      auto kept = std::make_unique<std::atomic<int>>(0);
      co_await scope([&kept](task_scope& s) {
        for (int n = 0; n < 4; ++n) {
          s.spawn_parallel([&kept]() -> task<> {
            counted here;
            try {
              co_await sleep_for(1h);
            } catch (const cancelled&) {
              ++*kept;
              throw;
            }
          });
        }
      });
    });
    if (i % 2 == 0 || !threaded()) {
      rt.spawn([&rt]() -> task<> {
        co_await sleep_for(1ms);
        rt.stop();
      });
      rt.run();
    } else {
      std::this_thread::sleep_for(1ms);  // sleeps: the children begin meanwhile, or not
    }
  }
  EXPECT_EQ(live.load(), 0);
}

TEST_P(parallel_scopes, results_come_in_the_order_of_start) {
  runtime rt(options());
  EXPECT_EQ(value_of(rt,
                     []() -> task<std::vector<int>> {
                       co_return co_await scope_results<int>([](results_scope<int>& s) {
                         for (int n = 0; n < 5; ++n) s.spawn(number(n, (5 - n) * 1ms));
                         s.spawn_parallel(number(5));
                       });
                     }),
            (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(live.load(), 0);
}

TEST_P(parallel_scopes, results_come_in_the_order_of_completion) {
  if (threaded())
    GTEST_SKIP() << "needs the simulated policy: the order of real timers is not certain";
  runtime rt(options());
  EXPECT_EQ(value_of(rt,
                     []() -> task<std::vector<int>> {
                       co_return co_await scope_results<int, result_order::of_completion>(
                           [](results_scope<int>& s) {
                             for (int n = 0; n < 4; ++n) s.spawn(number(n, (5 - n) * 1ms));
                           });
                     }),
            (std::vector<int>{3, 2, 1, 0}));
}

TEST_P(parallel_scopes, next_takes_a_result) {
  runtime rt(options());
  EXPECT_EQ(value_of(rt,
                     []() -> task<int> {
                       int taken = 0;
                       const auto left =
                           co_await scope_results<int>([&](results_scope<int>& s) -> task<> {
                             for (int n = 1; n <= 6; ++n) s.spawn(number(n, 1us * n));
                             for (int i = 0; i < 4; ++i) {
                               const std::optional<int> one = co_await s.next();
                               taken += one.value();
                             }
                           });
                       co_return static_cast<int>(left.size()) * 1000 + taken +
                           std::accumulate(left.begin(), left.end(), 0);
                     }),
            2021);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(parallel_scopes, a_failed_child_has_no_result) {
  runtime rt(options());
  EXPECT_EQ(value_of(rt,
                     []() -> task<std::string> {
                       std::string text;
                       try {
                         static_cast<void>(
                             co_await scope_results<std::string>([](results_scope<std::string>& s) {
                               s.spawn([]() -> task<std::string> {
                                 counted here;
                                 co_return std::string(100, 'x');
                               });
                               s.spawn([]() -> task<std::string> {
                                 counted here;
                                 co_await yield();
                                 throw std::runtime_error("no text");
                               });
                             }));
                       } catch (const std::runtime_error& e) {
                         text = e.what();
                       }
                       co_return text;
                     }),
            "no text");
  EXPECT_EQ(live.load(), 0);
}

TROUPE_TEST_EACH(parallel_scopes, all_settings);

}  // namespace
}  // namespace troupe::test
