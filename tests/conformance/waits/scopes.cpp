// Scopes: no child outlives its scope, the first failure ends the others, and children may add
// children.
#include <array>
#include <atomic>
#include <memory>
#include <numeric>
#include <stop_token>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class scopes : public conformance {};

template <class Made>
auto value_of(runtime& rt, Made&& made) {
  auto later = rt.spawn(std::forward<Made>(made));
  rt.run();
  return later.get();
}

task<> nothing() {
  counted here;
  co_return;
}
task<int> number(int n, std::chrono::nanoseconds after = {}) {
  counted here;
  if (after.count() > 0) co_await sleep_for(after);
  co_return n;
}
task<> add(int& to, int n, std::chrono::nanoseconds after = {}) {
  counted here;
  if (after.count() > 0) co_await sleep_for(after);
  to += n;
}
task<> fail(const char* text, std::chrono::nanoseconds after = {}) {
  counted here;
  if (after.count() > 0) co_await sleep_for(after);
  throw std::runtime_error(text);
}
// Says whether it was cancelled.
task<> sleep_long(int& cancelled_ones) {
  counted here;
  try {
    co_await sleep_for(1h);
  } catch (const cancelled&) {
    ++cancelled_ones;
    throw;
  }
}

template <class Body>
task<std::string> error_of(Body body) {
  std::string text = "none";
  try {
    auto all = scope(std::move(body));
    co_await std::move(all);
  } catch (const std::exception& e) {
    text = e.what();
  }
  co_return text;
}

TEST_P(scopes, ends_when_all_children_have_ended) {
  runtime rt(options());
  const int total = value_of(rt, []() -> task<int> {
    int sum = 0;
    co_await scope([&](task_scope& s) {
      for (int n = 1; n <= 100; ++n)
        s.spawn(add(sum, n, n % 3 == 0 ? 0us : std::chrono::microseconds(n)));
    });
    co_return sum;
  });
  EXPECT_EQ(total, 5050);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(scopes, without_children_it_ends_at_once) {
  runtime rt(options());
  EXPECT_EQ(value_of(rt,
                     []() -> task<int> {
                       co_await scope([](task_scope&) {});
                       const int value = co_await scope([](task_scope&) { return 1; });
                       const int other =
                           co_await scope([](task_scope&) -> task<int> { co_return 2; });
                       co_return value + other;
                     }),
            3);
}

TEST_P(scopes, one_that_is_not_awaited_never_runs) {
  runtime rt(options());
  bool has_run = false;
  value_of(rt, [&has_run]() -> task<int> {
    {
      auto never = scope([&](task_scope& s) {
        has_run = true;
        s.spawn(nothing());
      });
      static_cast<void>(never);
    }
    co_return 0;
  });
  EXPECT_FALSE(has_run);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(scopes, the_first_failure_cancels_the_others) {
  runtime rt(options());
  int cancelled_ones = 0;
  EXPECT_EQ(value_of(rt, error_of([&](task_scope& s) {
                       for (int i = 0; i < 10; ++i) s.spawn(sleep_long(cancelled_ones));
                       s.spawn(fail("the first", 1ms));
                       s.spawn(sleep_long(cancelled_ones));
                     })),
            "the first");
  EXPECT_EQ(cancelled_ones, 11);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(scopes, the_first_failure_keeps_its_type_and_the_others_are_reported) {
  runtime rt(options());
  struct own_error {};
  const auto fails_when_cancelled = [](std::string text) -> task<> {
    counted here;
    try {
      co_await sleep_for(1h);
    } catch (const cancelled&) {
      throw std::runtime_error(text);
    }
  };
  const auto seen = value_of(rt, [&]() -> task<std::vector<std::string>> {
    std::vector<std::exception_ptr> failures;
    std::vector<std::string> texts;
    try {
      co_await scope(failures, [&](task_scope& s) {
        s.spawn(fails_when_cancelled, "second");
        s.spawn(fails_when_cancelled, "third");
        s.spawn([]() -> task<> {
          co_await sleep_for(1ms);
          throw own_error();
        });
      });
    } catch (const own_error&) {
      texts.push_back("own");
    }
    for (std::size_t i = 1; i < failures.size(); ++i) {
      try {
        std::rethrow_exception(failures[i]);
      } catch (const std::exception& e) {
        texts.push_back(e.what());
      }
    }
    co_return texts;
  });
  EXPECT_EQ(seen, (std::vector<std::string>{"own", "second", "third"}));
  EXPECT_EQ(live.load(), 0);
}

TEST_P(scopes, a_body_that_throws_cancels_the_children) {
  runtime rt(options());
  int cancelled_ones = 0;
  EXPECT_EQ(value_of(rt, error_of([&](task_scope& s) -> task<> {
                       counted here;
                       s.spawn(sleep_long(cancelled_ones));
                       co_await yield();
                       throw std::runtime_error("the body");
                     })),
            "the body");
  EXPECT_EQ(cancelled_ones, 1);
  // children of a procedure that throws have not begun
  EXPECT_EQ(value_of(rt, error_of([&](task_scope& s) {
                       s.spawn(sleep_long(cancelled_ones));
                       throw std::runtime_error("the procedure");
                     })),
            "the procedure");
  EXPECT_EQ(cancelled_ones, 1);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(scopes, a_failure_while_the_children_start_leaves_the_rest_unstarted) {
  runtime rt(options());
  int cancelled_ones = 0;
  EXPECT_EQ(value_of(rt, error_of([&](task_scope& s) {
                       s.spawn(sleep_long(cancelled_ones));
                       s.spawn(fail("at once"));
                       for (int i = 0; i < 10; ++i) s.spawn(sleep_long(cancelled_ones));
                     })),
            "at once");
  EXPECT_EQ(cancelled_ones, 1);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(scopes, handles_give_values) {
  runtime rt(options());
  EXPECT_EQ(value_of(rt,
                     []() -> task<int> {
                       task_scope::child<int> one, two;
                       const int inside = co_await scope([&](task_scope& s) -> task<int> {
                         one = s.spawn(number(1, 1ms));
                         two = s.spawn(number(20));
                         auto three = s.spawn(number(300, 2ms));
                         const int third = co_await three;
                         const int late = co_await s.spawn(number(4000, 1ms));
                         co_return third + late;
                       });
                       co_return inside + one.get() + two.get();
                     }),
            4321);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(scopes, the_handle_of_a_failed_child_throws_its_exception) {
  runtime rt(options());
  EXPECT_EQ(value_of(rt,
                     []() -> task<std::string> {
                       task_scope::child<void> one;
                       task_scope::child<int> never;
                       std::string text;
                       try {
                         co_await scope([&](task_scope& s) {
                           one = s.spawn(fail("failed"));
                           never = s.spawn(number(1));
                         });
                       } catch (const std::runtime_error& e) {
                         text = e.what();
                       }
                       try {
                         one.get();
                       } catch (const std::runtime_error& e) {
                         text += std::string(" ") + e.what();
                       }
                       try {
                         static_cast<void>(never.get());
                       } catch (const cancelled&) {
                         text += " cancelled";
                       }
                       co_return text;
                     }),
            "failed failed cancelled");
}

TEST_P(scopes, next_tells_in_the_order_of_completion) {
  runtime rt(options());
  EXPECT_EQ(value_of(rt,
                     []() -> task<std::vector<int>> {
                       std::vector<int> seen, at_next;
                       co_await scope([&](task_scope& s) -> task<> {
                         for (const int each : {30, 10, 20}) {
                           s.spawn(
                               [&seen](int n) -> task<> {
                                 for (int i = 0; i < n; ++i) co_await yield();
                                 seen.push_back(n);
                               },
                               each);
                         }
                         for (;;) {
                           const bool one = co_await s.next();
                           if (!one) break;
                           at_next.push_back(seen.back());
                         }
                       });
                       co_return at_next;
                     }),
            (std::vector<int>{10, 20, 30}));
}

TEST_P(scopes, at_most_so_many_children_run_at_once) {
  runtime rt(options());
  struct counts {
    int now = 0, most = 0, all = 0;
  };
  const counts result = value_of(rt, []() -> task<counts> {
    counts seen;
    co_await scope([&](task_scope& s) {
      s.limit(3);
      for (int i = 0; i < 20; ++i) {
        s.spawn(
            [&seen](int n) -> task<> {
              seen.most = std::max(seen.most, ++seen.now);
              if (n % 2 == 0) co_await sleep_for(100us);
              co_await yield();
              --seen.now;
              ++seen.all;
            },
            i);
      }
    });
    co_return seen;
  });
  EXPECT_EQ(result.all, 20);
  EXPECT_EQ(result.most, 3);
}

task<> grow(task_scope& s, int depth, int& count) {
  counted here;
  ++count;
  if (depth == 0) co_return;
  if (depth % 2 == 0) co_await yield();
  s.spawn(grow(s, depth - 1, count));
  s.spawn(grow(s, depth - 1, count));
}

TEST_P(scopes, children_add_children) {
  runtime rt(options());
  EXPECT_EQ(value_of(rt,
                     []() -> task<int> {
                       int count = 0;
                       co_await scope([&](task_scope& s) { s.spawn(grow(s, 8, count)); });
                       co_return count;
                     }),
            511);
  EXPECT_EQ(live.load(), 0);
}

// Each child adds the next one, out of a group within it.
task<> chain(task_scope& s, int left, int& count) {
  counted here;
  ++count;
  if (left == 0) co_return;
  const auto go_on = [&](bool waits) -> task<> {
    if (waits) co_await yield();
    s.spawn(chain(s, left - 1, count));
  };
  auto inner = go_on(left % 7 == 0);
  auto other = nothing();
  co_await when_all(std::move(other), std::move(inner));
}

TEST_P(scopes, a_chain_of_children_uses_no_stack) {
  runtime rt(options());
  static constexpr int length = fewer(50'000, 10);
  EXPECT_EQ(value_of(rt,
                     []() -> task<int> {
                       int count = 0;
                       co_await scope([&](task_scope& s) { s.spawn(chain(s, length, count)); });
                       co_return count;
                     }),
            length + 1);
  EXPECT_EQ(live.load(), 0);
}

task<int> nested(int depth, bool waits) {
  counted here;
  if (depth == 0) {
    if (waits) co_await sleep_for(1ms);
    co_return 0;
  }
  task_scope::child<int> below;
  co_await scope([&](task_scope& s) { below = s.spawn(nested(depth - 1, waits)); });
  co_return below.get() + 1;
}

TEST_P(scopes, scopes_nest_as_deep_as_memory_allows) {
  runtime rt(options());
  static constexpr int depth = fewer(10'000, 10);
  EXPECT_EQ(value_of(rt, nested(depth, false)), depth);
  EXPECT_EQ(value_of(rt, nested(depth, true)), depth);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(scopes, deep_scopes_are_cancelled_without_stack) {
  runtime rt(options());
  static constexpr int depth = fewer(10'000, 10);
  EXPECT_EQ(value_of(rt, error_of([](task_scope& s) {
                       s.spawn([]() -> task<> {
                         static_cast<void>(co_await nested(depth, true).timeout(1h));
                       });
                       s.spawn([]() -> task<> {
                         const std::function<task<>(int)> down = [&](int left) -> task<> {
                           counted here;
                           if (left == 0) co_await sleep_for(1h);
                           co_await scope([&](task_scope& inner) { inner.spawn(down(left - 1)); });
                         };
                         co_await down(depth);
                       });
                       s.spawn(fail("enough", 100us));
                     })),
            "enough");
  EXPECT_EQ(live.load(), 0);
}

TEST_P(scopes, many_children) {
  runtime rt(options());
  static constexpr int count = fewer(100'000, 10);
  EXPECT_EQ(value_of(rt,
                     []() -> task<int> {
                       int sum = 0;
                       co_await scope([&](task_scope& s) {
                         for (int i = 0; i < count; ++i)
                           s.spawn(add(sum, 1, i % 100 == 0 ? 1us : 0us));
                       });
                       co_return sum;
                     }),
            count);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(scopes, cancel_ends_the_children_and_is_no_failure) {
  runtime rt(options());
  int cancelled_ones = 0;
  EXPECT_EQ(value_of(rt,
                     [&]() -> task<int> {
                       co_await scope([&](task_scope& s) -> task<> {
                         s.limit(2);
                         for (int i = 0; i < 4; ++i) s.spawn(sleep_long(cancelled_ones));
                         co_await sleep_for(1ms);
                         s.cancel();
                         co_await sleep_for(1ms);
                         s.spawn(sleep_long(cancelled_ones));
                       });
                       co_return cancelled_ones;
                     }),
            2);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(scopes, a_child_may_cancel_its_scope) {
  runtime rt(options());
  int cancelled_ones = 0;
  value_of(rt, [&]() -> task<int> {
    co_await scope([&](task_scope& s) {
      s.spawn(sleep_long(cancelled_ones));
      s.spawn([&s]() -> task<> {
        co_await sleep_for(1ms);
        s.cancel();
        bool was_cancelled = false;
        try {
          co_await sleep_for(1h);
        } catch (const cancelled&) {
          was_cancelled = true;
        }
        EXPECT_TRUE(was_cancelled);
      });
      s.spawn(sleep_long(cancelled_ones));
    });
    co_return 0;
  });
  EXPECT_EQ(cancelled_ones, 2);
  EXPECT_EQ(live.load(), 0);
}

// Sleeps in its handler, and says whether that was cancelled.
struct slow_server {
  std::atomic<int>* cancelled_ones;
  std::atomic<int>* begun = nullptr;  // calls
  task<> serve() { return ask_on({}); }
  task<> pass_on(ref<slow_server> to) { return ask_on(to); }
  task<> ask_on(ref<slow_server> to) {
    if (begun != nullptr) ++*begun;
    try {
      if (to) {
        co_await to.ask<&slow_server::serve>();
      } else {
        co_await sleep_for(1h);
      }
    } catch (const cancelled&) {
      ++*cancelled_ones;
      throw;
    }
  }
};

TEST_P(scopes, a_failure_cancels_what_children_and_body_ask_of_other_actors) {
  runtime rt(options());
  std::atomic<int> cancelled_ones{0}, begun{0};
  const auto make = [&] { return rt.spawn<slow_server>(slow_server{&cancelled_ones, &begun}); };
  const std::array<ref<slow_server>, 4> servers{make(), make(), make(), make()};
  const auto text = value_of(
      rt, error_of([&](task_scope& s) -> task<> {
        s.spawn([&]() -> task<> { co_await servers[0].ask<&slow_server::pass_on>(servers[1]); });
        s.spawn([&]() -> task<> {
          co_await when_all(servers[2].ask<&slow_server::serve>(), sleep_for(1h));
        });
        s.spawn([&]() -> task<> {
          while (begun != 4) co_await sleep_for(1ms);
          co_await fail("the first");
        });
        co_await servers[3].ask<&slow_server::serve>();
      }));
  EXPECT_EQ(text, "the first");
  EXPECT_EQ(cancelled_ones.load(), 4);
}

TEST_P(scopes, cancel_leaves_what_the_body_asks_and_ends_what_the_children_ask) {
  runtime rt(options());
  std::atomic<int> cancelled_ones{0}, at_the_end{0};
  std::atomic<int> begun{0};
  struct quick {
    std::atomic<int>* cancelled_ones;
    task<int> wait() {
      while (*cancelled_ones == 0) co_await sleep_for(1ms);
      co_return 7;
    }
  };
  const auto server = rt.spawn<slow_server>(slow_server{&cancelled_ones, &begun});
  const auto other = rt.spawn<quick>(quick{&cancelled_ones});
  EXPECT_EQ(value_of(rt,
                     [&]() -> task<int> {
                       int got = 0;
                       co_await scope([&](task_scope& s) -> task<> {
                         s.spawn([&]() -> task<> { co_await server.ask<&slow_server::serve>(); });
                         future<int> asked = other.ask<&quick::wait>();
                         while (begun == 0) co_await sleep_for(1ms);
                         s.cancel();
                         got = co_await std::move(asked);
                         at_the_end = cancelled_ones.load();
                       });
                       co_return got;
                     }),
            7);
  EXPECT_EQ(cancelled_ones.load(), 1);
  EXPECT_EQ(at_the_end.load(), 1);
}

TEST_P(scopes, a_stop_token_in_a_child_is_told_of_the_cancellation) {
  runtime rt(options());
  bool before = true, after = false;
  value_of(rt, error_of([&](task_scope& s) {
             s.spawn([&]() -> task<> {
               const std::stop_token token = this_call::stop_token();
               before = token.stop_requested();
               try {
                 co_await sleep_for(1h);
               } catch (const cancelled&) {
                 after = token.stop_requested();
               }
             });
             s.spawn(fail("the first", 2ms));
           }));
  EXPECT_FALSE(before);
  EXPECT_TRUE(after);
}

TEST_P(scopes, spawn_keeps_its_closure_and_arguments) {
  runtime rt(options());
  EXPECT_EQ(value_of(rt,
                     []() -> task<std::string> {
                       std::string all;
                       co_await scope([&](task_scope& s) {
                         for (int i = 0; i < 3; ++i) {
                           s.spawn(
                               [&all, text = std::string(40, static_cast<char>('a' + i))](
                                   std::unique_ptr<int> n, const std::string& more) -> task<> {
                                 co_await sleep_for(std::chrono::milliseconds(*n));
                                 all += text.substr(0, static_cast<std::size_t>(*n)) + more;
                               },
                               std::make_unique<int>(i + 1), "-");
                         }
                       });
                       co_return all;
                     }),
            "a-bb-ccc-");
}

struct keeper {
  int value = 0;
  int add(int n) { return value += n; }
  task<int> add_all(ref<keeper> other) {
    counted here;
    co_await scope([&](task_scope& s) {
      s.spawn(other.ask<&keeper::add>(1));
      s.spawn(sleep_for(1ms));
      s.spawn([this, other]() mutable -> task<> { value += co_await other.ask<&keeper::add>(10); });
    });
    co_return value;
  }
  task<> wait() {
    co_await scope([](task_scope& s) {
      s.spawn(sleep_for(1h));
      s.spawn([]() -> task<> {
        counted here;
        co_await scope([](task_scope& inner) -> task<> {
          inner.spawn(sleep_for(1h));
          counted within;
          static_cast<void>(co_await inner.next());
        });
      });
    });
  }
};

TEST_P(scopes, a_handler_awaits_one) {
  runtime rt(options());
  auto one = rt.spawn<keeper>();
  auto other = rt.spawn<keeper>();
  auto sum = one.ask<&keeper::add_all>(other);
  rt.run();
  EXPECT_EQ(sum.get(), 11);
}

TEST_P(scopes, the_end_of_the_actor_ends_its_scope) {
  runtime rt(options());
  auto one = rt.spawn<keeper>();
  auto waits = one.ask<&keeper::wait>();
  rt.spawn([one]() mutable -> task<> {
    co_await sleep_for(1ms);
    one.stop();
  });
  rt.run();
  EXPECT_THROW(waits.get(), actor_stopped);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(scopes, the_end_of_the_runtime_ends_them) {
  {
    runtime rt(options());
    auto one = rt.spawn<keeper>();
    one.tell<&keeper::wait>();
    rt.spawn([one, &rt]() mutable -> task<> {
      co_await one.ask<&keeper::add>(1);
      rt.stop();
    });
    rt.spawn([&rt]() -> task<> {
      co_await sleep_for(1ms);
      rt.stop();
    });
    rt.run();
  }
  EXPECT_EQ(live.load(), 0);
}

// The promises break when their actor is destroyed, and the children then meet that as failures of
// the scope, of which the first cancels the others.
TEST_P(scopes, the_end_of_the_runtime_ends_each_child_when_one_fails) {
  struct promises {
    std::array<promise<>, 4> all;
  };
  int ended = 0;
  {
    runtime rt(options());
    promises made;
    std::array<future<>, 4> later;
    for (std::size_t i = 0; i < later.size(); ++i) later[i] = made.all[i].get_future();
    const auto owner = rt.spawn<promises>(std::move(made));
    rt.spawn([&later, &ended]() -> task<> {
      co_await scope([&](task_scope& s) {
        for (future<>& one : later) {
          s.spawn([&one, &ended]() -> task<> {
            counted here;
            try {
              co_await std::move(one);
            } catch (...) {
              ++ended;
              throw;
            }
          });
        }
      });
    });
    rt.spawn([&rt]() -> task<> {
      co_await sleep_for(1ms);
      rt.stop();
    });
    rt.run();
  }
  EXPECT_EQ(ended, 4);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(scopes, a_timeout_ends_one) {
  runtime rt(options());
  int cancelled_ones = 0;
  EXPECT_TRUE(value_of(rt, [&]() -> task<bool> {
    bool timed = false;
    try {
      co_await scope([&](task_scope& s) {
        s.limit(5);
        for (int i = 0; i < 10; ++i) s.spawn(sleep_long(cancelled_ones));
      }).timeout(1ms);
    } catch (const timed_out&) {
      timed = true;
    }
    co_return timed;
  }));
  EXPECT_EQ(cancelled_ones, 5);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(scopes, only_the_body_and_children_add_children) {
  runtime rt(options());
  EXPECT_TRUE(value_of(rt, [&rt]() -> task<bool> {
    bool refused = false;
    co_await scope([&](task_scope& s) {
      s.spawn([&]() -> task<> {
        co_await rt.spawn([&refused, &s]() -> task<> {
          try {
            s.spawn(nothing());
          } catch (const usage_error&) {
            refused = true;
          }
          co_return;
        });
      });
    });
    co_return refused;
  }));
  EXPECT_EQ(live.load(), 0);
}

TEST_P(scopes, children_wait_for_each_other) {
  runtime rt(options());
  EXPECT_EQ(value_of(rt,
                     []() -> task<int> {
                       int sum = 0;
                       co_await scope([&](task_scope& s) {
                         auto first = s.spawn(number(5, 1ms));
                         s.spawn(
                             [&sum](task_scope::child<int> of) -> task<> { sum += co_await of; },
                             std::move(first));
                       });
                       co_return sum;
                     }),
            5);
}

// Each awaits the other's end; one of them is told.
TEST_P(scopes, a_circle_of_children_is_a_deadlock_with_its_chain) {
  runtime rt(options());
  const auto in_circle = [&](bool body_waits) -> task<std::string> {
    task_scope::child<int> one, two;
    const auto wait_for = [](task_scope::child<int>& other) -> task<int> {
      co_await yield();
      const int got = co_await other;
      co_return got;
    };
    std::string text;
    const auto body = [&](task_scope& s) -> task<> {
      one = s.spawn(wait_for(two));
      two = s.spawn(wait_for(one));
      if (body_waits) co_await sleep_for(1ms);
    };
    try {
      co_await scope(body);
    } catch (const deadlock& error) {
      text = error.what();
    }
    co_return text;
  };
  for (const bool body_waits : {false, true}) {
    const std::string text = value_of(rt, [&] { return in_circle(body_waits); });
    EXPECT_NE(text.find("waits for a child in"), std::string::npos) << text;
    EXPECT_NE(text.find("scopes.cpp:"), std::string::npos) << text;
  }
}

// The body holds what the child wants, and awaits the child.
TEST_P(scopes, a_circle_of_a_child_and_a_lock_is_a_deadlock) {
  runtime rt(options());
  const auto run = []() -> task<bool> {
    mutex busy;
    bool told = false;
    const auto wants_it = [&]() -> task<> {
      try {
        const auto held = co_await busy.lock();
      } catch (const deadlock&) {
        told = true;
      }
    };
    const auto body = [&](task_scope& s) -> task<> {
      const auto held = co_await busy.lock();
      auto child = s.spawn(wants_it());
      try {
        co_await child;
      } catch (const deadlock&) {
        told = true;
      }
    };
    co_await scope(body);
    co_return told;
  };
  EXPECT_TRUE(value_of(rt, run));
}

TROUPE_TEST_EACH(scopes, all_settings);

}  // namespace
}  // namespace troupe::test
