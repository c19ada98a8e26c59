// The same as sources.hpp, of streams behind adaptors and of pipes.
#pragma once

#include "given_up/kit_sources.hpp"

namespace troupe::test {

// What an adaptor makes of the numbers of a channel.
template <auto Adapt>
class adapted_source final : public source {
 public:
  void start(int count) override {
    spawn(fill(numbers_, count));
    all_ = Adapt(numbers_);
  }
  task<std::optional<int>> next() override { return as_number(all_.next()); }

 private:
  template <class Next>
  static task<std::optional<int>> as_number(Next next) {
    co_return co_await std::move(next);
  }
  static task<> fill(channel<int> to, int count) {
    for (int i = 0; i < count; ++i) {
      co_await to.send(i);
      const bool waits = pauses(i);
      if (waits) co_await yield();
    }
    to.close();
  }
  const channel<int> numbers_ = channel<int>::bounded(2);
  async_generator<int> all_;
};

namespace adapt {

using numbers = const channel<int>&;
inline async_generator<int> none() { co_return; }
inline task<int> later(int n) {
  co_await yield();
  co_return n;
}
inline task<bool> passes(const int&) {
  co_await yield();
  co_return true;
}
inline task<> never() {
  const event set;
  co_await set.wait();
}
inline async_generator<int> flat(async_generator<std::vector<int>> all) {
  while (auto some = co_await all.next()) {
    for (const int n : *some) co_yield n;
  }
}
inline auto map(numbers from) {
  return from | streams::map([](int n) { return n; });
}
inline auto then(numbers from) { return from | streams::then(&later); }
inline auto filter(numbers from) { return from | streams::filter(&passes); }
inline auto take(numbers from) { return from | streams::take(1'000'000'000); }
inline auto skip(numbers from) { return from | streams::skip(0); }
inline auto take_while(numbers from) {
  return from | streams::take_while([](int) { return true; });
}
inline auto take_until_stop(numbers from) {
  return from | streams::take_until(std::stop_source().get_token());
}
inline auto take_until(numbers from) {
  return from | streams::take_until(sleep_for(std::chrono::hours(1)).weak());
}
inline auto chunks(numbers from) { return flat(from | streams::chunks(3)); }
inline auto timed_chunks(numbers from) {
  return flat(from | streams::chunks(3, std::chrono::microseconds(1)));
}
inline auto throttle(numbers from) { return from | streams::throttle(std::chrono::nanoseconds(1)); }
inline auto buffered(numbers from) { return from | streams::map(&later) | streams::buffered(4); }
inline auto unordered(numbers from) {
  return from | streams::map(&later) | streams::buffered_unordered(1);
}
inline auto merge(numbers from) { return streams::merge(streams::from(from), none()); }
inline async_generator<int> firsts(async_generator<std::tuple<int, int>> pairs) {
  while (auto pair = co_await pairs.next()) co_yield std::get<0>(*pair);
}
inline async_generator<int> counting() {
  for (int i = 0;; ++i) co_yield i;
}
inline auto zip(numbers from) { return firsts(streams::zip(streams::from(from), counting())); }

}  // namespace adapt

// A pipe that borrows the stream for each number, and is dropped with its task.
class first_source final : public channel_source {
 public:
  explicit first_source(channel<int> of) : channel_source(of), all_(streams::from(of)) {}
  task<std::optional<int>> next() override { return streams::borrow(all_) | streams::first(); }

 private:
  async_generator<int> all_;
};
class taking_source final : public channel_source {
 public:
  explicit taking_source(channel<int> of) : channel_source(of), all_(streams::from(of)) {}
  task<std::optional<int>> next() override {
    auto one = streams::borrow(all_) | streams::map([](int n) { return n; }) | streams::take(1);
    co_return co_await one.next();
  }

 private:
  async_generator<int> all_;
};

// Each number is sent when the one before was taken, since debounce() gives the last one alone.
class debounce_source final : public source {
 public:
  void start(int count) override {
    spawn(fill(numbers_, taken_, count));
    all_ = numbers_ | streams::debounce(std::chrono::nanoseconds(1));
  }
  task<std::optional<int>> next() override {
    auto number = co_await all_.next();
    if (number) taken_->add(1);
    co_return number;
  }

 private:
  static task<> fill(channel<int> to, std::shared_ptr<semaphore> taken, int count) {
    for (int i = 0; i < count; ++i) {
      auto permit = co_await taken->acquire();
      permit.forget();
      co_await to.send(i);
    }
    to.close();
  }
  const channel<int> numbers_ = channel<int>::bounded(2);
  const std::shared_ptr<semaphore> taken_ = std::make_shared<semaphore>(1);
  async_generator<int> all_;
};

class answers_source final : public source {
 public:
  void start(int count) override { all_ = streams::answers<&counter::take>(spawn<counter>(count)); }
  task<std::optional<int>> next() override { co_return co_await all_.next(); }

 private:
  struct counter {
    explicit counter(int count) : left(count) {}
    std::optional<int> take() { return given == left ? std::nullopt : std::optional(given++); }
    int left, given = 0;
  };
  async_generator<int> all_;
};

inline std::vector<named_source> stream_sources() {
  return {{"map", &make_source<adapted_source<&adapt::map>>},
          {"then", &make_source<adapted_source<&adapt::then>>},
          {"filter", &make_source<adapted_source<&adapt::filter>>},
          {"take", &make_source<adapted_source<&adapt::take>>},
          {"skip", &make_source<adapted_source<&adapt::skip>>},
          {"take_while", &make_source<adapted_source<&adapt::take_while>>},
          {"take_until_stop", &make_source<adapted_source<&adapt::take_until_stop>>},
          {"take_until", &make_source<adapted_source<&adapt::take_until>>},
          {"chunks", &make_source<adapted_source<&adapt::chunks>>},
          {"timed_chunks", &make_source<adapted_source<&adapt::timed_chunks>>},
          {"throttle", &make_source<adapted_source<&adapt::throttle>>},
          {"buffered", &make_source<adapted_source<&adapt::buffered>>},
          {"buffered_unordered", &make_source<adapted_source<&adapt::unordered>>},
          {"debounce", &make_source<debounce_source>},
          {"answers", &make_source<answers_source>},
          {"merge", &make_source<adapted_source<&adapt::merge>>},
          {"zip", &make_source<adapted_source<&adapt::zip>>},
          {"first", &make_over<first_source, &bounded_channel>},
          {"taking", &make_over<taking_source, &bounded_channel>}};
}

// All of them beside a source that is almost always ready, and beside another one of their kind.
inline void check_beside_ready(const runtime_options& chosen, int count,
                               bool beside_their_kind = true) {
  std::vector<named_source> all = kit_sources();
  for (const named_source& each : stream_sources()) all.push_back(each);
  for (const named_source& each : all) {
    for (const named_source& ready : {sync_sources().front(), each}) {
      if (!beside_their_kind && ready.name == each.name) continue;
      const auto one = each.make(), other = ready.make();
      received got[2];
      {
        runtime rt(chosen);
        rt.spawn(drain_pair(*one, *other, count, got));
        rt.run();
      }
      for (const received& both : got) {
        EXPECT_EQ(both.next, count) << each.name << ' ' << ready.name;
        EXPECT_TRUE(both.in_order) << each.name << ' ' << ready.name;
      }
    }
  }
}
inline void check_under_limits(const runtime_options& chosen, int count) {
  std::vector<named_source> all = kit_sources();
  for (const named_source& each : stream_sources()) all.push_back(each);
  for (const named_source& each : all) {
    // A deadline around it is that of its ask, too, and ends the stream.
    if (std::string_view(each.name) == "answers") continue;
    const auto from = each.make();
    received got;
    {
      runtime rt(chosen);
      rt.spawn(drain_limited(*from, count, got));
      rt.run();
    }
    EXPECT_EQ(got.next, count) << each.name;
    EXPECT_TRUE(got.in_order) << each.name;
  }
}

}  // namespace troupe::test
