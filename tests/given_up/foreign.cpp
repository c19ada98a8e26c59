// Awaitables that are the program's own, in races, under limits and in helpers.
#include "given_up/foreign_sources.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class given_up_foreign : public conformance {};

TEST_P(given_up_foreign, each_own_awaitable_gives_all_its_values) {
  check_own_sources(options(), fewer(1'000, 10));
}

// A gate that only its holder opens, and that knows nothing of cancellation.
struct gate {
  bool await_ready() const noexcept { return is_open; }
  void await_suspend(std::coroutine_handle<> by) noexcept { waits = by; }
  void await_resume() const noexcept {}
  void open() {
    is_open = true;
    if (waits) std::exchange(waits, nullptr).resume();
  }
  bool is_open = false;
  std::coroutine_handle<> waits;
};
task<> passes(gate& of) { co_await of; }
task<int> gives(int value) {
  co_await yield();
  co_return value;
}
task<int> helps(gate& of) {
  auto first = co_await when_any(gives(7), passes(of));
  co_return std::get<0>(first);
}
// Others that run first.
task<> opens_later(gate& of, bool ends) {
  for (int i = 0; i < 10; ++i) co_await yield();
  of.open();
  if (!ends) co_await sleep_for(1h);
}

// The branch that is held for a helper opens what the loser of the helper waits for.
TEST_P(given_up_foreign, a_hold_for_what_needs_the_held_branch_ends) {
  for (const bool ends : {false, true}) {
    runtime rt(options());
    auto done = rt.spawn([](bool has_end) -> task<std::size_t> {
      gate closed;
      const auto first = co_await when_any(helps(closed), opens_later(closed, has_end));
      if (first.index() == 0) {
        EXPECT_EQ(std::get<0>(first), 7);
      }
      co_return first.index();
    }(ends));
    rt.run();
    const std::size_t winner = done.get();
    // A value that is lost is counted and written.
    EXPECT_EQ(rt.metrics().errors_dropped, winner == 0 ? 0u : 1u);
    if (!ends) {
      EXPECT_EQ(winner, 0u);
    }
  }
}

// A stop that discards all ends a hold, the messages that are kept for it, and its limit.
TEST_P(given_up_foreign, a_hold_ends_with_a_stop) {
  for (const std::chrono::milliseconds until_stop : {30ms, 200ms}) {
    gate closed;
    {
      runtime rt(options());
      rt.spawn([](gate& of) -> task<> {
        const auto counts = []() -> async_generator<int> {
          for (int i = 0;; ++i) {
            co_await sleep_for(1ms);
            co_yield int(i);
          }
        };
        const auto reads = [](async_generator<int> numbers) -> task<> {
          while (co_await numbers.next()) {
          }
        };
        static_cast<void>(co_await when_any(helps(of), reads(counts())));
      }(closed));
      rt.spawn([](runtime& all, std::chrono::milliseconds span) -> task<> {
        co_await sleep_for(span);
        all.stop(stop_mode::discard);
      }(rt, until_stop));
      rt.run();
    }
    closed.open();
  }
}

// The message of a limit is discarded by a runtime that ends without a turn of the actor.
TEST_P(given_up_foreign, the_limit_of_a_hold_ends_with_a_runtime_that_only_polled) {
  struct holder {
    task<> run(unchecked<gate*> of) {
      const auto yields = []() -> task<> {
        for (;;) co_await yield();
      };
      static_cast<void>(co_await when_any(helps(*of.value), yields()));
    }
  };
  gate closed;
  {
    runtime rt(options());
    auto held = rt.spawn<holder>(on_main());
    held.tell<&holder::run>(unchecked{&closed});
    for (int i = 0; i < 20; ++i) rt.poll();
    // sleeps: for longer than a hold lasts
    std::this_thread::sleep_for(options().policy == policy::simulated ? 0ms : 200ms);
  }
  closed.open();
}

// A handle that is resumed when the runtime has ended is not waited for.
TEST_P(given_up_foreign, what_nothing_resumes_ends_with_the_runtime) {
  gate late, later;
  {
    runtime rt(options());
    rt.spawn([](gate& first, gate& second) -> task<> {
      static_cast<void>(co_await when_any(passes(first), passes(second)));
    }(late, later));
    EXPECT_THROW(rt.run(), stalled);
  }
  late.open();
  later.open();
}

// A dropped generator ends the wait of its awaiter, or leaves it behind.
TEST_P(given_up_foreign, a_generator_that_is_dropped_leaves_the_values) {
  runtime rt(options());
  auto done = rt.spawn([]() -> task<> {
    numbers all;
    const auto each = [](numbers& from) -> async_generator<int> {
      for (;;) {
        numbers::cancellable waits(from);
        const std::optional<int> number = co_await waits;
        if (!number) break;
        co_yield int(*number);
      }
    };
    for (int i = 0; i < 10; ++i) {
      auto values = each(all);
      const auto first = co_await when_any(values.next(), yield());
      EXPECT_EQ(first.index(), 1u);
    }
    all.add(1);
    auto values = each(all);
    EXPECT_EQ(co_await values.next(), 1);
  }());
  rt.run();
  done.get();
}

// An exception of each part of an awaiter comes out of co_await.
struct throwing {
  int part;
  bool await_ready() const {
    if (part == 0) throw std::out_of_range("ready");
    return false;
  }
  bool await_suspend(std::coroutine_handle<>) const {
    if (part == 1) throw std::out_of_range("suspend");
    return false;
  }
  void await_resume() const { throw std::out_of_range("resume"); }
};
TEST_P(given_up_foreign, an_exception_of_each_part_comes_out) {
  runtime rt(options());
  auto done = rt.spawn([]() -> task<int> {
    int caught = 0;
    for (int part = 0; part < 3; ++part) {
      const throwing waits{part};
      try {
        co_await waits;
      } catch (const std::out_of_range&) {
        ++caught;
      }
    }
    co_return caught;
  }());
  rt.run();
  EXPECT_EQ(done.get(), 3);
}

TROUPE_TEST_EACH(given_up_foreign, each_policy);

}  // namespace
}  // namespace troupe::test
