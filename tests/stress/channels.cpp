// A storm of sends and receives that end in every way: by a time limit, a stop token, another case
// of a select, or the channel's end. A value arrives once if its send has said so, and never if
// not.
#include <array>
#include <memory>
#include <mutex>
#include <random>
#include <stop_token>
#include <thread>
#include <vector>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class channel_storms : public conformance {};

struct token {
  explicit token(std::size_t is) : number(std::make_unique<std::size_t>(is)) {}
  std::unique_ptr<std::size_t> number;
  counted here;
};
using tokens = channel<token>;

// The stop sources that the storm's parties use now.
class stops {
 public:
  std::stop_token fresh(std::size_t party) {
    std::lock_guard lock(mutex_);
    all_[party] = std::stop_source();
    return all_[party].get_token();
  }
  void request(std::size_t party) {
    std::stop_source one = [&] {
      std::lock_guard lock(mutex_);
      return all_[party];
    }();
    one.request_stop();
  }
  std::size_t size() const noexcept { return all_.size(); }

 private:
  std::mutex mutex_;
  std::array<std::stop_source, 16> all_;
};

struct storm {
  storm(std::size_t capacity, std::size_t count)
      : left(make(capacity)), right(make(capacity)), sent(count), received(count) {}
  static tokens make(std::size_t capacity) {
    return capacity == 0 ? tokens::rendezvous() : tokens::bounded(capacity);
  }
  void close() const {
    left.close();
    right.close();
  }

  tokens left, right;
  stops sources;
  std::vector<std::atomic<int>> sent, received;
  std::atomic<std::size_t> passed{0};
  std::atomic<unsigned> ended{0}, closed{0};
};

// One sender or receiver: the ways in which it waits, chosen by chance.
class party {
 public:
  party(storm& of, std::size_t number) noexcept
      : in_(of), number_(number), chance_(static_cast<unsigned>(number) + 1) {}

 protected:
  std::chrono::nanoseconds span() { return std::chrono::nanoseconds(chance_() % 30'000); }
  tokens& one() { return chance_() % 2 == 0 ? in_.left : in_.right; }
  std::stop_token stop() { return in_.sources.fresh(number_); }
  unsigned way() { return static_cast<unsigned>(chance_() % 5); }

  storm& in_;
  std::size_t number_;
  std::minstd_rand chance_;
};

// A send that has not happened leaves the value with the sender, who tries again.
class sender : party {
 public:
  sender(storm& of, std::size_t number, std::size_t begins, std::size_t count) noexcept
      : party(of, number), next_(begins), end_(begins + count) {}

  task<> run() {
    for (; next_ != end_; ++next_) {
      token mine(next_);
      while (mine.number != nullptr) {
        const unsigned by = way();
        try {
          if (by == 0) co_await one().send(std::move(mine));
          if (by == 1) co_await one().send(std::move(mine)).timeout(span());
          if (by == 2) co_await one().send(std::move(mine)).stop(stop());
          if (by == 3)
            co_await select(in_.left.send(std::move(mine)), in_.right.send(std::move(mine)));
          if (by == 4) one().try_send(std::move(mine));
        } catch (...) {
          if (!goes_on(mine)) co_return;
        }
      }
      ++in_.sent[next_];
    }
  }
  void block() {
    for (; next_ != end_; ++next_) {
      token mine(next_);
      while (mine.number != nullptr) {
        const unsigned by = way();
        try {
          if (by == 0) one().send(std::move(mine)).get();
          if (by == 1) one().send(std::move(mine)).timeout(span()).get();
          if (by == 2) one().send(std::move(mine)).stop(stop()).get();
          if (by == 3)
            static_cast<void>(
                select(in_.left.send(std::move(mine)), in_.right.send(std::move(mine)))
                    .timeout(span())
                    .get());
          if (by == 4) one().try_send(std::move(mine));
        } catch (...) {
          if (!goes_on(mine)) return;
        }
      }
      ++in_.sent[next_];
    }
  }

 private:
  // After an error: false if the channel is closed.
  bool goes_on(const token& mine) {
    EXPECT_TRUE(mine.number != nullptr && *mine.number == next_) << "it was sent all the same";
    try {
      throw;
    } catch (const channel_closed&) {
      ++in_.closed;
      return false;
    } catch (const timed_out&) {
    } catch (const cancelled&) {
    }
    ++in_.ended;
    return true;
  }

  std::size_t next_, end_;
};

// Receives until both channels have ended.
class receiver : party {
 public:
  using party::party;

  task<> run() {
    while (!over()) {
      std::optional<token> got;
      const unsigned by = way();
      tokens& from = open();
      try {
        if (by == 0) got = co_await from.receive().timeout(span());
        if (by == 1) got = co_await from.receive().stop(stop());
        if (by == 2) got = from.try_receive();
        if (by >= 3 && !over_left_ && !over_right_) {
          auto either = co_await select(in_.left.receive(), in_.right.receive());
          (either.index() == 0 ? over_left_ : over_right_) = !take_of(either, got);
        } else if (by >= 3) {
          got = co_await from.receive();
        }
      } catch (const error&) {
        ++in_.ended;
      }
      note(std::move(got), from);
    }
  }
  void block() {
    while (!over()) {
      std::optional<token> got;
      const unsigned by = way();
      tokens& from = open();
      try {
        if (by == 0) got = from.receive().timeout(span()).get();
        if (by == 1) got = from.receive().stop(stop()).get();
        if (by == 2) got = from.try_receive();
        if (by >= 3 && !over_left_ && !over_right_) {
          auto either = select(in_.left.receive(), in_.right.receive()).timeout(span()).get();
          (either.index() == 0 ? over_left_ : over_right_) = !take_of(either, got);
        } else if (by >= 3) {
          got = from.receive().get();
        }
      } catch (const error&) {
        ++in_.ended;
      }
      note(std::move(got), from);
    }
  }

 private:
  bool over() const noexcept { return over_left_ && over_right_; }
  tokens& open() {
    return over_left_ || (!over_right_ && chance_() % 2 == 0) ? in_.right : in_.left;
  }
  template <class Either>
  static bool take_of(Either& either, std::optional<token>& got) {
    got = std::move(either.index() == 0 ? std::get<0>(either) : std::get<1>(either));
    return got.has_value();
  }
  void note(std::optional<token>&& got, const tokens& from) {
    if (got.has_value()) {
      ++in_.received[*got->number];
      ++in_.passed;
    } else if (from.is_closed() && from.size() == 0) {
      // No sender waits and none will come.
      (&from == &in_.left ? over_left_ : over_right_) = true;
    }
  }

  bool over_left_ = false, over_right_ = false;
};

task<> run_sender(unchecked<storm*> in, std::size_t number, std::size_t begins, std::size_t count) {
  sender one(*in.value, number, begins, count);
  co_await one.run();
}
task<> run_receiver(unchecked<storm*> in, std::size_t number) {
  receiver one(*in.value, number);
  co_await one.run();
}

// Half of the parties are tasks, half are plain threads. The last sender closes the channels.
void rage(const runtime_options& chosen, storm& in, std::size_t each, bool closed_early) {
  constexpr std::size_t senders = 6, receivers = 6;
  runtime rt(chosen);
  std::atomic<bool> over{false};
  std::jthread stopper([&] {
    for (std::minstd_rand chance(7); !over.load(); std::this_thread::yield())
      in.sources.request(chance() % in.sources.size());
  });
  std::vector<std::jthread> receiving, sending;
  std::vector<future<void>> sending_tasks;
  for (std::size_t i = 0; i < receivers; i += 2) {
    rt.spawn(run_receiver(unchecked{&in}, i));
    receiving.emplace_back([&in, i, open = rt.hold()] { receiver(in, i + 1).block(); });
  }
  for (std::size_t i = 0; i < senders; i += 2) {
    const std::size_t number = receivers + i;
    sending_tasks.push_back(rt.spawn(run_sender(unchecked{&in}, number, i * each, each)));
    sending.emplace_back([&in, i, number, each, open = rt.hold()] {
      sender(in, number + 1, (i + 1) * each, each).block();
    });
  }
  std::jthread closer([&, open = rt.hold()] {
    if (closed_early) {
      while (in.passed.load() < each) std::this_thread::yield();
    } else {
      sending.clear();
      for (auto& one : sending_tasks) std::move(one).get();
    }
    in.close();
  });
  rt.run();
  closer.join();
  over = true;
}

TEST_P(channel_storms, each_value_that_is_sent_is_received_once) {
  EXPECT_EQ(live.load(), 0);
  const std::size_t each = static_cast<std::size_t>(fewer(2'000));
  unsigned ended = 0, closed = 0;
  for (const std::size_t capacity : {0U, 1U, 7U}) {
    for (const bool closed_early : {false, true}) {
      storm in(capacity, 6 * each);
      rage(options(), in, each, closed_early);
      for (std::size_t i = 0; i < 6 * each; ++i) {
        const int sent = in.sent[i];
        ASSERT_EQ(in.received[i], sent) << "value " << i << " of " << capacity;
        ASSERT_LE(sent, 1);
        ASSERT_TRUE(closed_early || sent == 1);
      }
      ended += in.ended;
      closed += in.closed;
    }
  }
  EXPECT_EQ(live.load(), 0);
  EXPECT_GT(ended, 0U);
  EXPECT_GT(closed, 0U);
}

TROUPE_TEST_EACH(channel_storms, threaded_settings);

}  // namespace
}  // namespace troupe::test
