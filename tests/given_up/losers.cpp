// What is lost with the waits that are no sources of values.
#include "given_up/sources.hpp"
#include "support/open_files.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class given_up_waits_alone : public conformance {
 protected:
  void run(task<> what) const {
    runtime rt(options());
    auto done = rt.spawn(std::move(what));
    rt.run();
    done.get();
  }
};

task<> soon() { co_await yield(); }

// Asks itself, which is refused: nothing would ever answer.
struct loner {
  int handled = 0;
  int count() { return ++handled; }
  task<int> counts() { co_return ++handled; }
  task<> ask_often(int times) {
    for (int i = 0; i < times; ++i) {
      auto plain = self(this).ask<&loner::count>();
      EXPECT_THROW(co_await std::move(plain), deadlock);
      auto coroutine = self(this).ask<&loner::counts>();
      EXPECT_THROW(co_await std::move(coroutine), deadlock);
    }
  }
  int get() { return handled; }
};

TEST_P(given_up_waits_alone, an_ask_that_was_refused_is_not_handled) {
  runtime rt(options());
  auto alone = rt.spawn<loner>();
  auto done = alone.ask<&loner::ask_often>(100);
  rt.run();
  EXPECT_NO_THROW(done.get());
  auto handled = alone.ask<&loner::get>();
  rt.run();
  EXPECT_EQ(handled.get(), 0);
}

TEST_P(given_up_waits_alone, a_barrier_does_not_count_a_party_that_gave_up) {
  run([]() -> task<> {
    barrier all(2);
    static_cast<void>(co_await when_any(all.arrive(), soon()));
    auto one = all.arrive(), other = all.arrive();
    auto both = co_await when_all(std::move(one), std::move(other));
    EXPECT_NE(std::get<0>(both), std::get<1>(both));
  }());
}

TEST_P(given_up_waits_alone, a_future_that_is_ready_has_its_value_within_any_limit) {
  run([]() -> task<> {
    const auto ready = [] {
      promise<int> to;
      auto from = to.get_future();
      to.set_value(7);
      return from;
    };
    EXPECT_EQ(co_await ready().timeout(0ns), 7);
    std::stop_source stopped;
    stopped.request_stop();
    EXPECT_EQ(co_await ready().stop(stopped.get_token()), 7);
    EXPECT_EQ(co_await as_task(ready()).timeout(0ns), 7);
    EXPECT_EQ(co_await as_task(ready()).timeout(-1ns), 7);
    auto first = co_await when_any(ready(), soon());
    EXPECT_EQ(first.index(), 0u);
  }());
}

TEST_P(given_up_waits_alone, a_task_that_has_its_value_at_the_limit_gives_it) {
  run([]() -> task<> {
    const auto deaf = []() -> task<int> {
      try {
        co_await sleep_for(1h);
      } catch (const cancelled&) {
      }
      co_return 5;
    };
    EXPECT_EQ(co_await deaf().timeout(1us), 5);
  }());
}

task<std::optional<int>> await_next(results_scope<int>& of) {
  auto next = of.next();
  co_return co_await next;
}

TEST_P(given_up_waits_alone, a_scope_gives_each_child_once) {
  run([]() -> task<> {
    int told = 0;
    auto left = co_await scope_results<int>([&](results_scope<int>& s) -> task<> {
      for (int i = 0; i < 100; ++i) {
        auto child = [](int n) -> task<int> {
          for (int k = 0; k < n % 3; ++k) co_await yield();
          co_return n;
        };
        s.spawn(child(i));
        auto first = co_await when_any(await_next(s), soon());
        if (first.index() == 0 && std::get<0>(first)) ++told;
      }
    });
    EXPECT_EQ(told + static_cast<int>(left.size()), 100);
  }());
}

TEST_P(given_up_waits_alone, a_child_keeps_running) {
  run([]() -> task<> {
    bool ended = false;
    co_await scope([&](task_scope& s) -> task<> {
      auto slow = [](bool& has_ended) -> task<int> {
        for (int k = 0; k < 5; ++k) co_await yield();
        has_ended = true;
        co_return 1;
      };
      auto child = s.spawn(slow(ended));
      auto waits = [](task_scope::child<int> of) -> task<int> { co_return co_await of; };
      static_cast<void>(co_await when_any(waits(std::move(child)), soon()));
    });
    EXPECT_TRUE(ended);
  }());
}

TEST_P(given_up_waits_alone, a_cache_loads_for_the_next_party) {
  run([]() -> task<> {
    cache<int, int> squares({}, [](const int& n) -> task<int> {
      for (int k = 0; k < 5; ++k) co_await yield();
      co_return n* n;
    });
    auto lost = squares.get(3), kept = squares.get(3);
    auto giving_up = [](auto of) -> task<> {
      static_cast<void>(co_await when_any(std::move(of), soon()));
    };
    auto both = co_await when_all(giving_up(std::move(lost)), std::move(kept));
    EXPECT_EQ(std::get<1>(both), 9);
  }());
}

async_generator<std::string> two_words() {
  co_yield std::string("one");
  co_yield std::string("two");
}

// A call that was cancelled before it waited has taken nothing, and nothing comes again.
TEST_P(given_up_waits_alone, a_generator_gives_each_value_once_whatever_the_limit) {
  for (const bool by_time : {false, true}) {
    run([](bool timed) -> task<> {
      auto words = two_words();
      const auto takes = [](async_generator<std::string>& from, bool is_timed) -> task<> {
        EXPECT_EQ(co_await from.next(), "one");
        try {
          co_await sleep_for(1h);
        } catch (const cancelled&) {
        }
        std::stop_source never;
        auto next = from.next();
        bool was_cancelled = false;
        try {
          if (is_timed) {
            static_cast<void>(co_await std::move(next).timeout(1s));
          } else {
            static_cast<void>(co_await std::move(next).stop(never.get_token()));
          }
        } catch (const cancelled&) {
          was_cancelled = true;
        }
        EXPECT_TRUE(was_cancelled);
      };
      static_cast<void>(co_await when_any(takes(words, timed), soon()));
      EXPECT_EQ(co_await words.next(), "two");
      EXPECT_EQ(co_await words.next(), std::nullopt);
    }(by_time));
  }
}

TEST_P(given_up_waits_alone, a_sleep_and_a_fork_end_by_themselves) {
  run([]() -> task<> {
    auto a_sleep = co_await when_any(sleep_for(1h), soon());
    EXPECT_EQ(a_sleep.index(), 1u);
    auto compute = []() -> task<int> {
      auto part = []() -> work<int> { co_return 1; };
      co_return co_await part();
    };
    auto a_fork = co_await when_any(compute(), soon());
    EXPECT_LE(a_fork.index(), 1u);
  }());
}

// Its holder has lost, and gives it back.
TEST_P(given_up_waits_alone, a_guarded_is_free_afterwards) {
  run([]() -> task<> {
    const guarded<int> value;
    const auto writes = [](guarded<int> of) -> task<> {
      auto inside = co_await of.write();
      ++*inside;
    };
    const auto reads = [](guarded<int> of) -> task<> { static_cast<void>(co_await of.read()); };
    for (int i = 0; i < 100; ++i) {
      std::optional held = co_await value.write();
      const auto lets_go = [](std::optional<writing<int>>& of, int turns) -> task<> {
        for (int k = 0; k < turns; ++k) co_await yield();
        of.reset();
      };
      auto first = when_any(writes(value), reads(value), lets_go(held, i % 3));
      static_cast<void>(co_await std::move(first));
      held.reset();
      EXPECT_TRUE(value.try_write().has_value());
    }
  }());
}

TEST_P(given_up_waits_alone, a_once_is_done_by_the_next_party) {
  run([]() -> task<> {
    const auto all = std::make_shared<once>();
    int done = 0;
    const auto make = [&done]() -> task<> {
      for (int k = 0; k < 3; ++k) co_await yield();
      ++done;
    };
    static_cast<void>(co_await when_any(all->call(make), soon()));
    EXPECT_FALSE(all->is_done());
    co_await all->call(make);
    co_await all->call(make);
    EXPECT_EQ(done, 1);
  }());
}

TEST_P(given_up_waits_alone, a_name_can_be_awaited_again) {
  run([]() -> task<> {
    registry names;
    auto first = when_any(names.wait<loner>("loner").as_task(), soon());
    static_cast<void>(co_await std::move(first));
    EXPECT_TRUE(names.add("loner", spawn<loner>()));
    const auto found = co_await names.wait<loner>("loner");
    EXPECT_TRUE(static_cast<bool>(found));
    EXPECT_TRUE(names.remove("loner"));
  }());
}

// What comes behind that is still in the stream, without a gap.
TEST_P(given_up_waits_alone, a_pipe_that_loses_has_taken_a_beginning) {
  run([]() -> task<> {
    const auto numbers = channel<int>::unbounded();
    auto all = streams::from(numbers);
    for (int i = 0; i < 10; ++i) numbers.try_send(i);
    std::vector<int> taken;
    const auto take = [&taken](int n) { taken.push_back(n); };
    auto first = when_any(streams::borrow(all) | streams::for_each(take), soon());
    static_cast<void>(co_await std::move(first));
    for (int i = 10; i < 20; ++i) numbers.try_send(i);
    numbers.close();
    while (const auto n = co_await all.next()) taken.push_back(*n);
    EXPECT_EQ(taken.size(), 20u);
    for (std::size_t i = 0; i < taken.size(); ++i) EXPECT_EQ(taken[i], static_cast<int>(i));
  }());
}

TEST_P(given_up_waits_alone, an_event_is_set_for_the_next_wait) {
  run([]() -> task<> {
    event set;
    latch down(1);
    const auto waits = [](auto of) -> task<> { co_await of.wait(); };
    static_cast<void>(co_await when_any(waits(set), waits(down), soon()));
    set.set();
    down.count_down();
    co_await set.wait();
    co_await down.wait();
  }());
}

// The rest of what waits.txt names needs the system.
TEST_P(given_up_waits_alone, a_process_can_be_awaited_again) {
  if (!threaded()) GTEST_SKIP() << "needs threads: a real process";
  run([]() -> task<> {
    auto child = process::start("true");
    static_cast<void>(co_await when_any(child.wait(), soon()));
    const exit_status ended = co_await child.wait();
    EXPECT_TRUE(ended.success());
  }());
}

TEST_P(given_up_waits_alone, a_connect_that_loses_leaves_no_descriptor) {
  const int before = open_files();
  run([]() -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    for (int i = 0; i < 50; ++i)
      static_cast<void>(co_await when_any(tcp_stream::connect(listener.local()), soon()));
  }());
  EXPECT_EQ(open_files(), before);
}

TEST_P(given_up_waits_alone, a_write_that_loses_has_written_a_beginning) {
  run([]() -> task<> {
    auto [from, to] = pipe_stream::make();
    const std::string much(1 << 20, 'x');
    auto a_write = co_await when_any(to.write_all(std::string_view(much)), soon());
    EXPECT_EQ(a_write.index(), 1u);
    to.close();
    std::size_t got = 0;
    for (;;) {
      const io_buffer some = co_await from.read_some();
      if (some.empty()) break;
      got += some.size();
    }
    EXPECT_LT(got, much.size());
  }());
}

TEST_P(given_up_waits_alone, a_file_that_is_read_at_offsets_loses_nothing) {
  if (!threaded()) GTEST_SKIP() << "needs threads: a real file";
  run([]() -> task<> {
    auto a_file = co_await file::open("/proc/self/cmdline");
    std::array<char, 4> buffer{};
    static_cast<void>(co_await when_any(a_file.read_at(0, buffer), soon()));
    const std::size_t bytes = co_await a_file.read_at(0, buffer);
    EXPECT_EQ(bytes, buffer.size());
  }());
}

TROUPE_TEST_EACH(given_up_waits_alone, each_policy);

}  // namespace
}  // namespace troupe::test
