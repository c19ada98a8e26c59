// Exceptions whose receiver has gone: counted and written, and never thrown by run()
// (docs/protocols/dropped_errors.md).
#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class dropped_errors : public conformance {};

struct lost : std::runtime_error {
  lost() : std::runtime_error("nobody waits for this") {}
};

task<> pause(int times) {
  for (int i = 0; i < times; ++i) co_await yield();
}
task<int> fail_after(int times) {
  co_await pause(times);
  throw lost();
}
// Throws an error of its own when its wait is cancelled.
task<int> fail_when_cancelled() {
  try {
    co_await sleep_for(1h);
  } catch (const cancelled&) {
  }
  throw lost();
}
async_generator<int> numbers_then_fail(int count, int pauses) {
  for (int i = 0; i < count; ++i) co_yield std::move(i);
  co_await pause(pauses);
  throw lost();
}
async_generator<int> fails_when_dropped() { co_yield co_await fail_when_cancelled(); }

struct fragile {
  int fail() { throw lost(); }
  task<int> fail_later() {
    co_await pause(3);
    throw lost();
  }
  future<int> fail_elsewhere() {
    promise<int> to;
    auto from = to.get_future();
    to.set_exception(std::make_exception_ptr(lost()));
    return from;
  }
};

template <class Wait>
task<> expect_lost(Wait wait) {
  bool thrown = false;
  try {
    static_cast<void>(co_await std::move(wait));
  } catch (const lost&) {
    thrown = true;
  }
  EXPECT_TRUE(thrown);
}
template <class Wait>
task<> expect_timed_out(Wait wait) {
  bool thrown = false;
  try {
    static_cast<void>(co_await std::move(wait));
  } catch (const timed_out&) {
    thrown = true;
  }
  EXPECT_TRUE(thrown);
}

task<> loser_of_when_any(runtime&) {
  auto first = co_await when_any(pause(1), fail_when_cancelled());
  EXPECT_EQ(first.index(), 0u);
}
task<> loser_of_a_vector(runtime&) {
  std::vector<task<int>> all;
  all.push_back([]() -> task<int> { co_return 1; }());
  all.push_back(fail_when_cancelled());
  all.insert(all.begin(), fail_when_cancelled());
  auto first = co_await when_any(std::move(all));
  static_cast<void>(first);
}
task<> task_that_timed_out(runtime&) {
  co_await expect_timed_out(fail_when_cancelled().timeout(1us));
}
task<> later_failure_of_when_all(runtime&) {
  co_await expect_lost(when_all(fail_after(1), fail_after(2)));
}
task<> later_failure_of_a_scope(runtime&) {
  co_await expect_lost(scope([](task_scope& s) {
    s.spawn(fail_after(1));
    s.spawn(fail_when_cancelled());
  }));
}
task<> later_failure_behind_a_handle(runtime&) {
  co_await expect_lost(scope([](task_scope& s) -> task<> {
    s.spawn(fail_after(1));
    auto handle = s.spawn(fail_when_cancelled());
    co_await pause(1);
  }));
}
task<> body_that_fails_later(runtime&) {
  co_await expect_lost(scope([](task_scope& s) -> task<> {
    s.spawn(fail_after(1));
    static_cast<void>(co_await fail_when_cancelled());
  }));
}
task<> later_failure_of_scope_results(runtime&) {
  co_await expect_lost(scope_results<int>([](results_scope<int>& s) {
    s.spawn(fail_after(1));
    s.spawn(fail_when_cancelled());
  }));
}
task<> generator_that_failed_unseen(runtime&) {
  auto all = numbers_then_fail(0, 3);
  auto first = co_await when_any(all.next(), pause(1));
  EXPECT_EQ(first.index(), 1u);
  co_await pause(10);
}
task<> generator_that_fails_as_it_is_dropped(runtime&) {
  auto all = fails_when_dropped();
  auto first = co_await when_any(all.next(), pause(1));
  EXPECT_EQ(first.index(), 1u);
}
task<> chunk_before_a_failure(runtime&) {
  auto all = numbers_then_fail(2, 0) | streams::chunks(5);
  auto some = co_await all.next();
  EXPECT_EQ(some->size(), 2u);
}
task<> dropped_ask(runtime& rt) {
  auto later = rt.spawn<fragile>().ask<&fragile::fail>();
  co_return;
}
task<> dropped_ask_of_a_coroutine(runtime& rt) {
  auto later = rt.spawn<fragile>().ask<&fragile::fail_later>();
  co_return;
}
task<> dropped_ask_of_a_future(runtime& rt) {
  auto later = rt.spawn<fragile>().ask<&fragile::fail_elsewhere>();
  co_return;
}
task<> ask_that_timed_out(runtime& rt) {
  auto late = [](fragile&) -> task<int> {
    co_await sleep_for(1ms);
    throw lost();
  };
  auto later = rt.spawn<fragile>().ask(late);
  co_await expect_timed_out(std::move(later).timeout(1us));
}
task<> dropped_blocking_call(runtime&) {
  auto later = blocking([]() -> int { throw lost(); });
  co_return;
}
task<> dropped_call_on_main(runtime& rt) {
  auto later = rt.main().call([]() -> int { throw lost(); });
  co_return;
}
task<> dropped_future(runtime&) {
  promise<int> to;
  { auto from = to.get_future(); }
  to.set_exception(std::make_exception_ptr(lost()));
  co_return;
}
task<> future_that_was_dropped_ready(runtime&) {
  promise<int> to;
  auto from = to.get_future();
  to.set_exception(std::make_exception_ptr(lost()));
  co_return;
}
work<int> fail_at_once() {
  throw lost();
  co_return 1;
}
work<int> fork_of_two() {
  auto both = co_await fork(fail_at_once(), fail_at_once());
  static_cast<void>(both);
  co_return 1;
}
// The second part runs beside the first one, or is not begun any more.
task<> first_failure_of_a_fork(runtime&) { co_await expect_lost(fork_of_two()); }

struct row {
  const char* name;
  task<> (*body)(runtime&);
  std::uint64_t least, most;
};
constexpr row dropping[] = {
    {"loser_of_when_any", &loser_of_when_any, 1, 1},
    {"loser_of_a_vector", &loser_of_a_vector, 1, 1},
    {"task_that_timed_out", &task_that_timed_out, 1, 1},
    {"later_failure_of_when_all", &later_failure_of_when_all, 1, 1},
    {"later_failure_of_a_scope", &later_failure_of_a_scope, 1, 1},
    {"later_failure_behind_a_handle", &later_failure_behind_a_handle, 1, 1},
    {"body_that_fails_later", &body_that_fails_later, 1, 1},
    {"later_failure_of_scope_results", &later_failure_of_scope_results, 1, 1},
    {"generator_that_failed_unseen", &generator_that_failed_unseen, 1, 1},
    {"generator_that_fails_as_it_is_dropped", &generator_that_fails_as_it_is_dropped, 1, 1},
    {"chunk_before_a_failure", &chunk_before_a_failure, 1, 1},
    {"dropped_ask", &dropped_ask, 1, 1},
    {"dropped_ask_of_a_coroutine", &dropped_ask_of_a_coroutine, 1, 1},
    {"dropped_ask_of_a_future", &dropped_ask_of_a_future, 1, 1},
    {"ask_that_timed_out", &ask_that_timed_out, 1, 1},
    {"dropped_blocking_call", &dropped_blocking_call, 1, 1},
    {"dropped_call_on_main", &dropped_call_on_main, 1, 1},
    {"dropped_future", &dropped_future, 1, 1},
    {"future_that_was_dropped_ready", &future_that_was_dropped_ready, 1, 1},
    {"first_failure_of_a_fork", &first_failure_of_a_fork, 0, 1},
};

std::size_t count_in(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

TEST_P(dropped_errors, each_is_counted_and_written) {
  for (const row& each : dropping) {
    testing::internal::CaptureStderr();
    std::uint64_t dropped = 0;
    {
      runtime rt(options());
      rt.spawn(each.body(rt));
      EXPECT_NO_THROW(rt.run()) << each.name;
      dropped = rt.metrics().errors_dropped;
      EXPECT_EQ(rt.metrics().failures, 0u) << each.name;
    }
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_GE(dropped, each.least) << each.name;
    EXPECT_LE(dropped, each.most) << each.name;
    EXPECT_EQ(count_in(text, "troupe: dropped error: "), dropped) << each.name << ": " << text;
    EXPECT_EQ(count_in(text, "nobody waits for this"), dropped) << each.name << ": " << text;
  }
}

task<> ask_with_a_receiver(runtime& rt) {
  auto plain = rt.spawn<fragile>().ask<&fragile::fail>();
  co_await expect_lost(std::move(plain));
  auto coroutine = rt.spawn<fragile>().ask<&fragile::fail_later>();
  co_await expect_lost(std::move(coroutine));
  auto forwarded = rt.spawn<fragile>().ask<&fragile::fail_elsewhere>();
  co_await expect_lost(std::move(forwarded));
}
task<> scope_with_receivers(runtime&) {
  std::vector<std::exception_ptr> failures;
  co_await expect_lost(scope(failures, [](task_scope& s) {
    s.spawn(fail_after(1));
    s.spawn(fail_when_cancelled());
  }));
  EXPECT_EQ(failures.size(), 2u);
  std::optional<task_scope::child<int>> handle;
  co_await expect_lost(scope([&handle](task_scope& s) {
    s.spawn(fail_after(1));
    handle.emplace(s.spawn(fail_when_cancelled()));
  }));
  EXPECT_THROW(handle->get(), lost);
  co_await expect_lost(scope([](task_scope&) -> task<int> { co_return co_await fail_after(1); }));
}
// A child's error that the body passes on is the scope's own.
task<> body_that_passes_an_error_on(runtime&) {
  co_await expect_lost(scope([](task_scope& s) -> task<> {
    auto handle = s.spawn(fail_after(1));
    try {
      co_await pause(5);
    } catch (const cancelled&) {
    }
    std::move(handle).get();
  }));
}
struct sleeper {
  task<int> sleep() {
    co_await sleep_for(1h);
    co_return 1;
  }
};
task<> ask_past_its_deadline(runtime& rt) {
  const auto asked = rt.spawn<sleeper>();
  co_await expect_timed_out(with_deadline(1ms, [asked] { return asked.ask<&sleeper::sleep>(); }));
}
task<> generator_with_a_receiver(runtime&) {
  auto all = numbers_then_fail(2, 1) | streams::chunks(5);
  auto some = co_await all.next();
  EXPECT_EQ(some->size(), 2u);
  co_await expect_lost(all.next());
}
task<> lazy_with_two_receivers(runtime&) {
  auto failing = lazy([]() -> int { throw lost(); });
  co_await expect_lost(failing);
  co_await expect_lost(failing);
}
task<> callbacks_that_get_it(runtime& rt) {
  auto got = std::make_shared<int>(0);
  auto later = rt.spawn<fragile>().ask<&fragile::fail>();
  later.then([](int) {}, [got](const std::exception_ptr&) { ++*got; });
  co_await pause(20);
}
// with_deadline gives what its task throws in place of cancelled.
task<> task_past_its_deadline(runtime&) {
  co_await expect_lost(with_deadline(1us, fail_when_cancelled()));
}
task<> cancelled_work(runtime&) {
  auto first = co_await when_any(pause(1), sleep_for(1h));
  static_cast<void>(first);
  co_await expect_timed_out([]() -> task<> { co_await sleep_for(1h); }().timeout(1us));
}

TEST_P(dropped_errors, what_a_receiver_gets_is_not_counted) {
  constexpr row receiving[] = {
      {"ask_with_a_receiver", &ask_with_a_receiver, 0, 0},
      {"scope_with_receivers", &scope_with_receivers, 0, 0},
      {"body_that_passes_an_error_on", &body_that_passes_an_error_on, 0, 0},
      {"ask_past_its_deadline", &ask_past_its_deadline, 0, 0},
      {"generator_with_a_receiver", &generator_with_a_receiver, 0, 0},
      {"lazy_with_two_receivers", &lazy_with_two_receivers, 0, 0},
      {"callbacks_that_get_it", &callbacks_that_get_it, 0, 0},
      {"task_past_its_deadline", &task_past_its_deadline, 0, 0},
      {"cancelled_work", &cancelled_work, 0, 0},
  };
  for (const row& each : receiving) {
    runtime rt(options());
    rt.spawn(each.body(rt));
    EXPECT_NO_THROW(rt.run()) << each.name;
    EXPECT_EQ(rt.metrics().errors_dropped, 0u) << each.name;
  }
}

task<> await_beside(lazy<int> of, bool& was_told) {
  try {
    static_cast<void>(co_await of);
  } catch (const lost&) {
    was_told = true;
  }
}

// The pause may end before the lazy or after it.
TEST_P(dropped_errors, an_error_of_a_lazy_is_told_or_counted) {
  bool was_told = false;
  runtime rt(options());
  rt.spawn([](bool& told) -> task<> {
    auto failing = lazy([]() -> int { throw lost(); });
    static_cast<void>(co_await when_any(await_beside(std::move(failing), told), pause(1)));
  }(was_told));
  rt.run();
  EXPECT_EQ(rt.metrics().errors_dropped, was_told ? 0u : 1u);
}

TEST_P(dropped_errors, lines_are_limited) {
  testing::internal::CaptureStderr();
  {
    runtime rt(options());
    rt.spawn([](runtime& in) -> task<> {
      auto failing = in.spawn<fragile>();
      for (int i = 0; i < 100; ++i) static_cast<void>(failing.ask<&fragile::fail>());
      co_return;
    }(rt));
    rt.run();
    EXPECT_EQ(rt.metrics().errors_dropped, 100u);
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_LE(count_in(text, "troupe: dropped error: "), 20u) << text;
  EXPECT_GE(count_in(text, "more in the last second"), 1u) << text;
}

TROUPE_TEST_EACH(dropped_errors, each_policy);

}  // namespace
}  // namespace troupe::test
