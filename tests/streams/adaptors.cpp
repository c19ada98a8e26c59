// Adaptors of streams: each gives what it says, reads no further than it says, and loses no value
// when a timer or a cancelled call ends a wait.
#include <map>
#include <set>
#include <thread>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
namespace views = std::views;

class stream_adaptors : public conformance {
 protected:
  template <class T>
  T run(task<T> one) {
    runtime rt(options());
    auto result = rt.spawn(std::move(one));
    rt.run();
    return result.get();
  }
};

async_generator<int> numbers(int end, std::chrono::nanoseconds span = 0ns) {
  counted here;
  for (int i = 0; i < end; ++i) {
    if (span > 0ns) co_await sleep_for(span);
    co_yield i;
  }
}
async_generator<int> failing(int end) {
  counted here;
  for (int i = 0; i < end; ++i) co_yield i;
  co_await sleep_for(50us);
  throw std::runtime_error("failed");
}
template <class T>
std::string text_of(const std::vector<T>& all) {
  std::ostringstream text;
  for (const T& one : all) text << one << ' ';
  return text.str();
}
template <class T>
task<std::string> shown(async_generator<T> of) {
  std::ostringstream text;
  try {
    while (auto one = co_await of.next()) text << *one << ' ';
  } catch (const std::exception& e) {
    text << e.what();
  }
  co_return text.str();
}

TEST_P(stream_adaptors, take_ranges_generators_and_streams) {
  std::vector<int> named{1, 2, 3};
  EXPECT_EQ(run(shown(streams::from(named))), "1 2 3 ");
  EXPECT_EQ(named.size(), 3u);
  EXPECT_EQ(run(shown(streams::from(std::vector{4, 5}))), "4 5 ");
  EXPECT_EQ(run(shown(streams::from(views::iota(0, 3)))), "0 1 2 ");
  auto body = []() -> generator<std::string> {
    co_yield std::string("a");
    co_yield std::string("b");
  };
  EXPECT_EQ(run(shown(streams::from(body()))), "a b ");
  EXPECT_EQ(run(shown(streams::from(numbers(3)))), "0 1 2 ");
  struct own {
    int left = 2;
    task<std::optional<int>> next() {
      counted here;
      co_return left == 0 ? std::nullopt : std::optional(left--);
    }
  };
  EXPECT_EQ(run(shown(streams::from(own()))), "2 1 ");
  std::vector<std::unique_ptr<int>> owned;
  owned.push_back(std::make_unique<int>(7));
  auto all = std::move(owned) | streams::map([](std::unique_ptr<int> one) { return *one; });
  EXPECT_EQ(run(shown(std::move(all))), "7 ");
  EXPECT_EQ(live.load(), 0);
}

TEST_P(stream_adaptors, map_filter_take_and_skip) {
  EXPECT_EQ(run(shown(numbers(10) | streams::map([](int n) { return n * n; }) |
                      streams::filter([](int n) { return n % 2 == 0; }))),
            "0 4 16 36 64 ");
  EXPECT_EQ(run(shown(numbers(1000, 10us) | streams::skip(3) | streams::take(3))), "3 4 5 ");
  EXPECT_EQ(run(shown(numbers(2) | streams::take(3))), "0 1 ");
  EXPECT_EQ(run(shown(numbers(2) | streams::skip(3))), "");
  EXPECT_EQ(run(shown(numbers(2) | streams::take(0))), "");
  EXPECT_EQ(run(shown(numbers(9) | streams::take_while([](int n) { return n < 3; }))), "0 1 2 ");
  auto row = streams::map([](int n) { return n + 1; }) | streams::take(2);
  EXPECT_EQ(run(shown(numbers(9) | row)), "1 2 ");
  auto later = [](int n) -> task<bool> {
    co_await sleep_for(10us);
    co_return n % 3 == 0;
  };
  EXPECT_EQ(run(shown(numbers(9) | streams::filter(later))), "0 3 6 ");
  auto twice = [](int n) -> task<int> {
    co_await sleep_for(10us);
    co_return 2 * n;
  };
  EXPECT_EQ(run(shown(numbers(4) | streams::then(twice))), "0 2 4 6 ");
  EXPECT_EQ(live.load(), 0);
}

TEST_P(stream_adaptors, pass_failures_on) {
  auto bad = [](int n) {
    if (n == 2) throw std::runtime_error("bad");
    return n;
  };
  auto bad_test = [](int n) -> bool { return n < 2 ? true : throw std::runtime_error("bad"); };
  EXPECT_EQ(run(shown(numbers(9) | streams::map(bad))), "0 1 bad");
  EXPECT_EQ(run(shown(numbers(9) | streams::filter(bad_test))), "0 1 bad");
  EXPECT_EQ(run(shown(failing(2) | streams::map([](int n) { return n; }))), "0 1 failed");
  EXPECT_EQ(run(shown(failing(2) | streams::take(9))), "0 1 failed");
  EXPECT_EQ(run(shown(failing(2) | streams::debounce(1ms))), "1 failed");
  EXPECT_EQ(run(shown(failing(2) | streams::throttle(1us))), "0 1 failed");
  EXPECT_EQ(run(shown(failing(3) | streams::chunks(2, 1h) |
                      streams::map([](std::vector<int> some) { return text_of(some); }))),
            "0 1  2  failed");
  EXPECT_EQ(run(shown(streams::merge(failing(0), numbers(1, 1h)))), "failed");
  EXPECT_EQ(live.load(), 0);
}

task<std::string> by_terminals() {
  std::ostringstream text;
  text << text_of(co_await (numbers(4) | streams::collect())) << '|';
  const auto set = co_await (numbers(4) | streams::map([](int n) { return n / 2; }) |
                             streams::collect<std::set<int>>());
  text << set.size() << '|';
  text << co_await (numbers(4) | streams::fold(10, [](int a, int b) { return a + b; })) << '|';
  const auto first = co_await (numbers(4) | streams::skip(2) | streams::first());
  text << first.value() << '|';
  const auto none = co_await (numbers(0) | streams::first());
  text << none.has_value() << '|';
  text << co_await (numbers(4, 5us) | streams::count()) << '|';
  int sum = 0;
  co_await (numbers(4) | streams::for_each([&sum](int n) { sum += n; }));
  text << sum << '|';
  co_await (numbers(4) | streams::for_each([&sum](int n) -> task<> {
              co_await sleep_for(5us);
              sum += n;
            }));
  text << sum << '|';
  text << co_await (numbers(4) | streams::fold(0, [](int a, int b) -> task<int> {
                      co_await sleep_for(5us);
                      co_return a + b;
                    }));
  co_return text.str();
}

TEST_P(stream_adaptors, end_in_terminals) {
  EXPECT_EQ(run(by_terminals()), "0 1 2 3 |2|16|2|0|4|6|12|6");
  EXPECT_EQ(live.load(), 0);
}

TEST_P(stream_adaptors, lend_a_stream) {
  auto body = []() -> task<std::string> {
    auto all = numbers(6);
    auto some = co_await (streams::borrow(all) | streams::take(2) | streams::collect());
    auto rest = co_await (std::move(all) | streams::collect());
    co_return text_of(some) + "|" + text_of(rest);
  };
  EXPECT_EQ(run(body()), "0 1 |2 3 4 5 ");
}

// How many run now, and ran at most.
struct crowd {
  int now = 0, most = 0, begun = 0;
  struct inside {
    explicit inside(crowd& within) : of(within) {
      ++of.begun;
      of.most = std::max(of.most, ++of.now);
    }
    inside(const inside&) = delete;
    ~inside() { --of.now; }
    crowd& of;
  };
};
task<int> work(crowd& with, int n, std::chrono::nanoseconds span) {
  counted here;
  crowd::inside inside(with);
  if (span > 0ns) co_await sleep_for(span);
  co_return n;
}

TEST_P(stream_adaptors, run_awaitables_at_once) {
  for (const std::size_t most : {1u, 3u, 8u, 100u}) {
    crowd with;
    auto begin = [&with](int n) {
      return work(with, n, n % 3 == 0 ? 0ns : std::chrono::microseconds(300 - 20 * n));
    };
    EXPECT_EQ(run(shown(numbers(12) | streams::map(begin) | streams::buffered(most))),
              "0 1 2 3 4 5 6 7 8 9 10 11 ");
    EXPECT_LE(with.most, static_cast<int>(most));
    if (most == 8) {
      EXPECT_GT(with.most, 3);
    }
    EXPECT_EQ(with.now, 0);
    crowd others;
    auto begin_other = [&others](int n) {
      return work(others, n, std::chrono::milliseconds(n % 2 == 0 ? 0 : 2));
    };
    const auto found = run(numbers(12, 10us) | streams::map(begin_other) |
                           streams::buffered_unordered(most) | streams::collect());
    EXPECT_EQ(std::set<int>(found.begin(), found.end()).size(), 12u);
    EXPECT_LE(others.most, static_cast<int>(most));
  }
  EXPECT_THROW(streams::buffered(0), usage_error);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(stream_adaptors, give_results_in_the_order_in_which_they_are_done) {
  const auto begin = [](int n) -> task<int> {
    co_await sleep_for(std::chrono::milliseconds(n == 0 ? 20 : 10 - n));
    co_return n;
  };
  const auto shows = [&begin](std::size_t most) {
    return shown(numbers(4) | streams::map(begin) | streams::buffered_unordered(most));
  };
  if (!threaded()) {
    EXPECT_EQ(run(shows(9)), "3 2 1 0 ");
  }
  EXPECT_EQ(run(shows(1)), "0 1 2 3 ");
  EXPECT_EQ(live.load(), 0);
}

TEST_P(stream_adaptors, are_dropped_by_another_thread_while_their_tasks_end) {
  if (!threaded()) GTEST_SKIP() << "needs threads";
  for (int round = 0; round < fewer(200); ++round) {
    runtime rt(options());
    promise<async_generator<int>> handed;
    auto later = handed.get_future();
    const auto begin = [](int n) -> task<int> {
      counted here;
      for (int i = 0; i < n % 7; ++i) co_await yield();
      co_await sleep_for(std::chrono::microseconds(n % 5 * 10));
      co_return n;
    };
    const auto hands_over = [begin](promise<async_generator<int>> to, bool ordered) -> task<> {
      auto all = numbers(100) | streams::map(begin) | streams::buffered(20);
      auto some = numbers(100) | streams::map(begin) | streams::buffered_unordered(20);
      auto& one = ordered ? all : some;
      static_cast<void>(co_await one.next());
      to.set_value(std::move(one));
      for (int i = 0; i < 20; ++i) co_await yield();
    };
    rt.spawn(hands_over(std::move(handed), round % 2 == 0));
    std::thread drops([&later, round] {
      auto one = later.get();
      for (int i = 0; i < round % 50; ++i) std::this_thread::yield();
    });
    rt.run();
    drops.join();
  }
  EXPECT_EQ(live.load(), 0);
}

TEST_P(stream_adaptors, run_void_tasks_and_futures_at_once) {
  int sum = 0;
  auto add = [&sum](int n) -> task<> {
    co_await sleep_for(10us);
    sum += n;
  };
  EXPECT_EQ(run(numbers(5) | streams::map(add) | streams::buffered(2) | streams::count()), 5u);
  EXPECT_EQ(sum, 10);
  struct adder {
    int add(int a, int b) { return a + b; }
  };
  runtime rt(options());
  auto actor = rt.spawn<adder>();
  auto ask = [actor](int n) { return actor.ask<&adder::add>(n, 1); };
  auto done = rt.spawn(numbers(5) | streams::map(ask) | streams::buffered(3) | streams::collect());
  rt.run();
  EXPECT_EQ(text_of(done.get()), "1 2 3 4 5 ");
}

TEST_P(stream_adaptors, end_what_runs_at_once_with_the_first_failure) {
  crowd with;
  auto begin = [&with](int n) -> task<int> {
    counted here;
    crowd::inside inside(with);
    co_await sleep_for(n == 2 ? 50us : 1h);
    if (n == 2) throw std::runtime_error("second");
    co_return n;
  };
  EXPECT_EQ(run(shown(numbers(9) | streams::map(begin) | streams::buffered_unordered(4))),
            "second");
  EXPECT_EQ(with.now, 0);
  EXPECT_EQ(with.begun, 4);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(stream_adaptors, begin_nothing_ahead) {
  auto body = []() -> task<std::string> {
    crowd with;
    int asked = 0;
    auto source = [](int& count) -> async_generator<int> {
      for (;;) co_yield count++;
    };
    auto begin = [&with](int n) { return work(with, n, 10us); };
    auto all = source(asked) | streams::map(begin) | streams::buffered(3);
    const auto first = co_await all.next();
    co_await sleep_for(1ms);
    std::ostringstream text;
    text << *first << ' ' << (with.begun <= 4) << (asked <= 4);
    co_return text.str();
  };
  EXPECT_EQ(run(body()), "0 11");
  EXPECT_EQ(live.load(), 0);
}

TEST_P(stream_adaptors, merge_and_zip) {
  auto merged =
      run(streams::merge(numbers(20, 20us), numbers(20), numbers(20, 30us)) | streams::collect());
  std::map<int, int> found;
  for (int n : merged) ++found[n];
  EXPECT_EQ(merged.size(), 60u);
  EXPECT_EQ(found.size(), 20u);
  // none that is always ready keeps the others waiting
  EXPECT_EQ(run(shown(streams::merge(numbers(3), numbers(3)))), "0 0 1 1 2 2 ");
  std::vector<async_generator<int>> none;
  EXPECT_EQ(run(shown(streams::merge(std::move(none)))), "");
  auto pairs = streams::zip(numbers(3, 10us), std::vector<std::string>{"a", "b", "c", "d"}) |
               streams::map([](std::tuple<int, std::string> both) {
                 return std::get<1>(both) + std::to_string(std::get<0>(both));
               });
  EXPECT_EQ(run(shown(std::move(pairs))), "a0 b1 c2 ");
  EXPECT_EQ(live.load(), 0);
}

TEST_P(stream_adaptors, wait_for_all_that_they_zip_at_once) {
  if (!simulated()) GTEST_SKIP() << "needs the simulated policy: virtual time";
  auto body = []() -> task<std::chrono::nanoseconds> {
    auto all = streams::zip(numbers(3, 10ms), numbers(3, 10ms));
    const auto began = co_await streams::time_now();
    while (auto one = co_await all.next()) {
    }
    const auto ended = co_await streams::time_now();
    co_return ended - began;
  };
  EXPECT_LT(run(body()), 40ms);
}

TEST_P(stream_adaptors, end_at_a_given_time_or_stop) {
  EXPECT_EQ(run(shown(numbers(1, 1h) | streams::take_until(sleep_for(100us)))), "");
  EXPECT_EQ(run(shown(numbers(3) | streams::take_until(sleep_for(1h)))), "0 1 2 ");
  std::stop_source stop;
  auto stopper = [](std::stop_source of) -> task<> {
    co_await sleep_for(1ms);
    of.request_stop();
  };
  runtime rt(options());
  rt.spawn(stopper(stop));
  auto found = rt.spawn(shown(numbers(1, 1h) | streams::take_until(stop.get_token())));
  event end;
  auto by_event = rt.spawn(shown(numbers(1, 1h) | streams::take_until(end.wait())));
  auto setter = [](event of) -> task<> {
    co_await sleep_for(1ms);
    of.set();
  };
  rt.spawn(setter(end));
  auto fails = []() -> task<> {
    co_await sleep_for(10us);
    throw std::runtime_error("the end failed");
  };
  auto failed = rt.spawn(shown(numbers(1, 1h) | streams::take_until(fails())));
  rt.run();
  EXPECT_EQ(found.get(), "");
  EXPECT_EQ(by_event.get(), "");
  EXPECT_EQ(failed.get(), "the end failed");
  EXPECT_EQ(live.load(), 0);
}

// All values of all chunks, with the sizes of the chunks that may be too large.
task<std::string> chunked(async_generator<std::vector<int>> of, std::size_t most) {
  std::string text;
  int next = 0;
  while (auto some = co_await of.next()) {
    if (some->empty() || some->size() > most) text += "size ";
    for (int n : *some) {
      if (n != next++) text += "order ";
    }
  }
  co_return text + std::to_string(next);
}

TEST_P(stream_adaptors, make_chunks) {
  auto sizes = streams::map([](std::vector<int> some) { return some.size(); });
  EXPECT_EQ(run(shown(numbers(7) | streams::chunks(3) | sizes)), "3 3 1 ");
  EXPECT_EQ(run(shown(numbers(0) | streams::chunks(3) | sizes)), "");
  EXPECT_EQ(run(shown(numbers(7) | streams::chunks(3, 1h) | sizes)), "3 3 1 ");
  for (const auto span : {10us, 100us, 1000us}) {
    EXPECT_EQ(run(chunked(numbers(100, 20us) | streams::chunks(10, span), 10)), "100");
    EXPECT_EQ(run(chunked(numbers(100) | streams::chunks(10, span), 10)), "100");
  }
  if (!threaded()) {
    EXPECT_EQ(run(shown(numbers(10, 10ms) | streams::chunks(100, 35ms) | sizes)), "4 4 2 ");
  }
  EXPECT_EQ(live.load(), 0);
}

TEST_P(stream_adaptors, keep_the_time_between_values) {
  EXPECT_EQ(run(shown(numbers(5) | streams::throttle(10us))), "0 1 2 3 4 ");
  EXPECT_EQ(run(shown(numbers(5) | streams::debounce(1h))), "4 ");
  EXPECT_EQ(run(shown(numbers(0) | streams::debounce(1h))), "");
  if (threaded()) return;
  auto body = []() -> task<std::string> {
    auto all = numbers(5) | streams::throttle(10ms);
    const auto began = co_await streams::time_now();
    std::ostringstream text;
    while (auto one = co_await all.next()) {
      const auto now = co_await streams::time_now();
      text << *one << '@' << (now - began) / 10ms << ' ';
    }
    co_return text.str();
  };
  EXPECT_EQ(run(body()), "0@0 1@1 2@2 3@3 4@4 ");
  EXPECT_EQ(run(shown(numbers(3, 10ms) | streams::debounce(5ms))), "0 1 2 ");
  EXPECT_EQ(run(shown(numbers(3, 10ms) | streams::debounce(15ms))), "2 ");
}

// Takes all values, and gives up each wait after a short time.
template <class T>
task<std::vector<T>> impatient(async_generator<T> of, std::chrono::nanoseconds span) {
  std::vector<T> all;
  for (;;) {
    bool late = false;
    std::optional<T> one;
    try {
      one = co_await of.next().timeout(span);
    } catch (const timed_out&) {
      late = true;
    }
    if (late) {
      co_await sleep_for(1us);
      continue;
    }
    if (!one) break;
    all.push_back(std::move(*one));
  }
  co_return all;
}

TEST_P(stream_adaptors, lose_nothing_when_the_wait_is_given_up) {
  const std::string all = "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 ";
  crowd with;
  auto begin = [&with](int n) { return work(with, n, 30us); };
  for (const auto span : {0us, 10us, 25us, 100us}) {
    EXPECT_EQ(
        text_of(run(impatient(numbers(20, 20us) | streams::map([](int n) { return n; }), span))),
        all);
    EXPECT_EQ(text_of(run(impatient(numbers(20, 20us) | streams::throttle(30us), span))), all);
    EXPECT_EQ(text_of(run(impatient(numbers(20, 20us) | streams::debounce(5us), span))).size() > 2,
              true);
    EXPECT_EQ(text_of(run(impatient(numbers(20, 20us) | streams::take_until(sleep_for(1h)), span))),
              all);
    EXPECT_EQ(text_of(run(
                  impatient(numbers(20, 20us) | streams::map(begin) | streams::buffered(3), span))),
              all);
    EXPECT_EQ(run(impatient(streams::merge(numbers(20, 20us), numbers(20, 30us)), span)).size(),
              40u);
    std::vector<int> found;
    for (auto& some : run(impatient(numbers(20, 20us) | streams::chunks(3, 50us), span)))
      found.insert(found.end(), some.begin(), some.end());
    EXPECT_EQ(text_of(found), all);
  }
  EXPECT_EQ(live.load(), 0);
}

// A call that is cancelled ends the wait, and drops the stream at each kind of wait.
TEST_P(stream_adaptors, end_when_their_call_is_cancelled) {
  crowd with, others;
  auto begin = [&with](int n) { return work(with, n, 1h); };
  auto begin_other = [&others](int n) { return work(others, n, 1h); };
  auto slow_test = [](int) -> task<bool> {
    counted here;
    co_await sleep_for(1h);
    co_return true;
  };
  {
    runtime rt(options());
    std::vector<future<std::string>> all;
    const auto limited = [&](auto stream) {
      auto whole = [](decltype(stream) of) -> task<std::string> {
        counted here;
        std::size_t n = 0;
        while (auto one = co_await of.next()) ++n;
        co_return std::to_string(n);
      };
      all.push_back(rt.spawn(whole(std::move(stream)).timeout(100us)));
    };
    limited(numbers(9, 1h) | streams::map([](int n) { return n; }));
    limited(numbers(9) | streams::filter(slow_test));
    limited(numbers(9) | streams::map(begin) | streams::buffered(3));
    limited(numbers(9) | streams::map(begin_other) | streams::buffered_unordered(3));
    limited(streams::merge(numbers(9, 1h), numbers(9, 1h)));
    limited(streams::zip(numbers(9, 1h), numbers(9, 1h)));
    limited(numbers(9, 1h) | streams::chunks(3, 10us));
    limited(numbers(9, 1h) | streams::throttle(10us));
    limited(numbers(9) | streams::throttle(1h));
    limited(numbers(9, 1h) | streams::debounce(10us));
    limited(numbers(9, 1h) | streams::take_until(sleep_for(1h)));
    rt.run();
    for (auto& one : all) EXPECT_THROW(one.get(), timed_out);
  }
  EXPECT_EQ(with.now + others.now, 0);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(stream_adaptors, end_with_the_runtime) {
  {
    runtime rt(options());
    auto begin = [](int n) -> task<int> {
      counted here;
      co_await sleep_for(1h);
      co_return n;
    };
    rt.spawn(shown(numbers(9) | streams::map(begin) | streams::buffered(3)));
    rt.spawn(shown(streams::merge(numbers(9, 1h), numbers(9, 1h))));
    rt.spawn(numbers(9, 1h) | streams::chunks(3, 10us) | streams::count());
    rt.after(1ms, [&rt] { rt.stop(stop_mode::discard); });
    rt.run();
  }
  EXPECT_EQ(live.load(), 0);
}

TROUPE_TEST_EACH(stream_adaptors, all_settings);

}  // namespace
}  // namespace troupe::test
