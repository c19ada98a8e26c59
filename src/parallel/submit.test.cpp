// Calls that run side by side, each in a context of its own.
#include "troupe/parallel/submit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "troupe/context/persist.hpp"
#include "troupe/context/snapshot.hpp"
#include "troupe/task/event.hpp"
#include "troupe/task/timer.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using text = std::pmr::string;
constexpr const char* long_text = "a text that is longer than a string holds by itself";

std::string what_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& failure) {
    return failure.what();
  }
}

class submit : public testing::TestWithParam<policy> {
 protected:
  runtime rt{{.workers = 2, .policy = GetParam()}};
  const context_counters before = count_contexts();
  void TearDown() override {
    rt.post([] { throw 1; });
    EXPECT_THROW(rt.run(), int) << "it is the last error now, and has no context";
    EXPECT_EQ(count_contexts().active, before.active);
    EXPECT_EQ(count_contexts().persisted, before.persisted);
  }
};
INSTANTIATE_TEST_SUITE_P(policies, submit,
                         testing::Values(policy::work_stealing, policy::simulated),
                         [](const auto& tested) {
                           return tested.param == policy::simulated ? "simulated" : "work_stealing";
                         });

TEST_P(submit, the_value_comes_to_the_callback_in_the_calls_context) {
  bool same = false;
  std::string got;
  context* of_call = nullptr;
  troupe::submit(
      rt,
      [&](context& memory, std::string word) {
        of_call = &memory;
        same = &this_context() == &memory;
        return std::pmr::vector<text>(2, text(word, &memory), &memory);
      },
      std::string(long_text))
      .then([&](const std::pmr::vector<text>& words) {
        same = same && &this_context() == of_call && owner_of(words.back().data()) == of_call;
        got = words.back();
      });
  rt.run();
  EXPECT_TRUE(same);
  EXPECT_EQ(got, long_text);
}

TEST_P(submit, without_a_callback_it_runs_at_the_end_of_the_statement) {
  std::atomic<int> ran{0};
  troupe::submit(rt, [&] { ++ran; });
  {
    auto later = troupe::submit(
        rt, [&](int n) { ran += n; }, 10);
  }
  rt.run();
  EXPECT_EQ(ran, 11);
}

TEST_P(submit, many_run_side_by_side) {
  std::atomic<int> sum{0};
  for (int i = 0; i < 200; ++i) {
    troupe::submit(
        rt, [](context& memory, int n) { return std::pmr::vector<int>(1000, n, &memory); }, i)
        .then([&](const auto& all) {
          for (const int n : all) ASSERT_EQ(n, all.front());
          sum += all.front();
        });
  }
  rt.run();
  EXPECT_EQ(sum, 199 * 200 / 2);
}

TEST_P(submit, an_error_comes_to_the_errback_and_its_context_is_still_there) {
  struct refused {
    const char* why;
  };
  std::string why;
  troupe::submit(rt, [](context& memory) { throw refused{memory.make<text>(long_text)->c_str()}; })
      .then([] { FAIL(); },
            [&](const std::exception_ptr& error) {
              try {
                std::rethrow_exception(error);
              } catch (const refused& failure) {
                why = failure.why;
              }
            });
  rt.run();
  EXPECT_EQ(why, long_text);
}

TEST_P(submit, an_error_of_the_callback_comes_to_the_errback) {
  std::string why;
  troupe::submit(rt, [] { return 1; })
      .then([](int) { throw std::runtime_error("of the callback"); },
            [&](const std::exception_ptr& error) { why = what_of(error); });
  rt.run();
  EXPECT_EQ(why, "of the callback");
}

// With one worker: two of the calls may throw at once, when a busy machine lets both times pass.
TEST_P(submit, errors_of_errbacks_come_to_run_one_at_a_time_and_in_order) {
  runtime single({.workers = 1, .policy = GetParam()});
  for (int i = 0; i < 3; ++i) {
    single.after((i + 1) * 2ms, [&single, i] {
      troupe::submit(single, [] { throw std::runtime_error("of the call"); })
          .then([] {},
                [i](const std::exception_ptr&) { throw std::runtime_error(std::to_string(i)); });
    });
  }
  for (int i = 0; i < 3; ++i) {
    try {
      single.run();
      FAIL();
    } catch (const std::runtime_error& failure) {
      EXPECT_EQ(failure.what(), std::to_string(i));
    }
  }
  single.run();
}

// The text lies in the context, and still exists when run() has thrown the error.
TEST_P(submit, an_error_without_an_errback_comes_to_run_and_keeps_its_context) {
  struct refused {
    const char* why;
  };
  troupe::submit(rt, [](context& memory) { throw refused{memory.make<text>(long_text)->c_str()}; });
  try {
    rt.run();
    FAIL();
  } catch (const refused& failure) {
    EXPECT_EQ(std::string(failure.why), long_text);
    EXPECT_EQ(count_contexts().active - before.active, 1);
  }
  troupe::submit(rt, [] { throw std::runtime_error("the next one"); });
  EXPECT_THROW(rt.run(), std::runtime_error);
  EXPECT_EQ(count_contexts().active - before.active, 1) << "the next one's";
}

task<int> slowly(context& memory, int n) {
  auto numbers = memory.make<std::pmr::vector<int>>(static_cast<std::size_t>(n), 1);
  co_await sleep_for(1ms);
  EXPECT_EQ(current_context(), nullptr) << "after a co_await take the parameter";
  numbers->push_back(1);
  co_return static_cast<int>(numbers->size());
}

TEST_P(submit, a_call_may_be_a_coroutine) {
  int got = 0;
  troupe::submit(rt, &slowly, 9).then([&](int n) { got = n; });
  rt.run();
  EXPECT_EQ(got, 10);
}

task<> fails_slowly() {
  co_await sleep_for(1ms);
  throw std::runtime_error("slowly");
}

TEST_P(submit, what_a_coroutine_throws_comes_to_the_errback) {
  std::string why;
  troupe::submit(rt, &fails_slowly)
      .then([] { FAIL(); }, [&](const std::exception_ptr& error) { why = what_of(error); });
  rt.run();
  EXPECT_EQ(why, "slowly");
}

// The call's frame lies in no context, so that no rollback frees it.
task<bool> frame_is_elsewhere(context& memory) {
  int local = 0;
  scoped_rollback each(memory);
  co_await yield();
  co_return owner_of(&local) == nullptr;
}

TEST_P(submit, a_coroutines_frame_lies_in_no_context) {
  bool elsewhere = false;
  troupe::submit(rt, &frame_is_elsewhere).then([&](bool yes) { elsewhere = yes; });
  rt.run();
  EXPECT_TRUE(elsewhere);
}

struct Asker {
  int got = 0, errors = 0;
  bool busy = false, overlapped = false;
  void start(int n) {
    for (int i = 0; i < n; ++i) {
      troupe::submit([](int k) { return k % 2 == 0 ? k : throw std::runtime_error("odd"); }, i)
          .then([this](int k) { enter(), got += k, leave(); },
                [this](const std::exception_ptr&) { enter(), ++errors, leave(); });
    }
  }
  void enter() { overlapped = std::exchange(busy, true) || overlapped; }
  void leave() { busy = false; }
  void fail() {
    troupe::submit([] {}).then([] { throw std::runtime_error("of a handler's callback"); });
  }
};

TEST_P(submit, in_a_handler_the_callbacks_are_turns_of_its_actor) {
  auto asker = rt.spawn<Asker>();
  asker.tell<&Asker::start>(100);
  rt.run();
  asker.tell([](Asker& self) {
    EXPECT_EQ(self.got, 99 * 100 / 2 - 2500);
    EXPECT_EQ(self.errors, 50);
    EXPECT_FALSE(self.overlapped);
  });
  rt.run();
  asker.tell<&Asker::fail>();
  EXPECT_THROW(rt.run(), std::runtime_error);
  EXPECT_NE(rt.thrown().actor.find("Asker"), std::string::npos);
}

task<> fails_when_set(event go) {
  co_await go.wait().timeout(1h);
  throw std::runtime_error("nobody hears");
}

TEST_P(submit, an_error_for_an_actor_that_has_stopped_comes_to_run) {
  auto asker = rt.spawn<Asker>();
  event go;
  asker.tell([go](Asker&) {
    troupe::submit(&fails_when_set, go).then([] {}, [](const std::exception_ptr&) { FAIL(); });
  });
  asker.stop();
  rt.after(2ms, [go] { go.set(); });
  EXPECT_THROW(rt.run(), std::runtime_error);
}

// After a time, and again and again: a timer's calls may have a context each, too.
TEST_P(submit, a_timers_call_has_a_context_of_its_own) {
  const auto start = rt.now();
  std::chrono::nanoseconds at{0};
  const context* of_call = nullptr;
  rt.after(5ms,
           [&] {
             at = rt.now() - start;
             of_call = &this_context();
           },
           {.context = context_options{}});
  rt.after(5ms, [] { EXPECT_EQ(current_context(), nullptr); });
  rt.run();
  EXPECT_GE(at, 5ms);
  EXPECT_NE(of_call, nullptr);
}

TEST_P(submit, a_timers_calls_have_a_new_context_each_until_it_is_stopped) {
  std::stop_source enough;
  std::vector<std::uint64_t> numbers;
  rt.every(1ms,
           [&] {
             numbers.push_back(this_context().number());
             if (numbers.size() == 2)
               throw std::runtime_error(this_context().make<text>(long_text)->c_str());
             if (numbers.size() == 5) enough.request_stop();
           },
           {.stop = enough.get_token(), .context = context_options{}});
  EXPECT_THROW(rt.run(), std::runtime_error);
  rt.run();
  ASSERT_EQ(numbers.size(), 5u);
  std::ranges::sort(numbers);
  EXPECT_EQ(std::ranges::adjacent_find(numbers), numbers.end());
  EXPECT_THROW(rt.every(0ns, [] {}, {.context = context_options{}}), option_error);
  EXPECT_THROW(rt.every(1ns, [] {}, {.context = context_options{.bytes_max = 1}}), option_error);
}

TEST_P(submit, the_context_of_a_timers_call_lives_as_long_as_its_failure) {
  struct refused {
    const char* why;
  };
  rt.after(1ms, [] { throw refused{this_context().make<text>(long_text)->c_str()}; },
           {.context = context_options{}});
  try {
    rt.run();
    FAIL();
  } catch (const refused& failure) {
    EXPECT_EQ(std::string(failure.why), long_text);
    EXPECT_EQ(count_contexts().active - before.active, 1);
  }
}

task<> when_set(event go, std::chrono::nanoseconds at_most, bool* ran) {
  co_await go.wait().timeout(at_most);
  *ran = true;
}

TEST_P(submit, when_an_event_is_set_or_not_in_time) {
  event go, never;
  bool ran = false, ran_late = false, was_late = false;
  troupe::submit(rt, [&, go] { return when_set(go, 1h, &ran); });
  troupe::submit(rt, [&, never] { return when_set(never, 2ms, &ran_late); })
      .then([] { FAIL(); },
            [&](const std::exception_ptr& error) {
              try {
                std::rethrow_exception(error);
              } catch (const timed_out&) {
                was_late = true;
              }
            });
  rt.after(3ms, [go] { go.set(); });
  rt.run();
  EXPECT_TRUE(ran);
  EXPECT_FALSE(ran_late);
  EXPECT_TRUE(was_late);
}

TEST_P(submit, a_timer_that_waits_is_ended_with_the_runtime_or_stopped) {
  std::stop_source stop;
  stop.request_stop();
  const timer_options stopped{.stop = stop.get_token(), .context = context_options{}};
  rt.after(
      1h, [] { FAIL(); }, stopped);
  rt.after(1h, [] { FAIL(); }, {.weak = true, .context = context_options{}});
  rt.run();
}

TEST_P(submit, what_is_persisted_outlives_the_call) {
  persisted<text> kept;
  troupe::submit(rt, [](context& memory) {
    return persist(memory.make<text>(long_text));
  }).then([&](persisted<text> value) { kept = std::move(value); });
  rt.run();
  EXPECT_EQ(*kept, long_text);
}

TEST_P(submit, outside_of_handlers_it_wants_the_runtime) {
  EXPECT_THROW(troupe::submit([] {}), usage_error);
}

}  // namespace
}  // namespace troupe
