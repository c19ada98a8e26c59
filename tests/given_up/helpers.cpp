// A wait in a helper, whose competitor ends late, while the helper itself loses.
#include "given_up/stream_sources.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class given_up_in_helpers : public conformance {};

// The numbers that came, which should be 0, 1, 2, …
struct tally {
  int taken = 0, next = 0;
  bool is_in_order = true;
  // Returns false at the end.
  bool add(const std::optional<int>& value) {
    if (!value) return false;
    ++taken;
    is_in_order = is_in_order && *value == next;
    next = *value + 1;
    return true;
  }
};

// Takes numbers until the end, through helpers that lose every now and then.
template <class Source>
task<> take_all(Source source, tally& got) {
  using value = typename Source::value;
  for (int i = 0;; ++i) {
    auto first = co_await when_any(in_helpers<value>(source.next(), i % helper_ways),
                                   sleep_for(i % 7 * 40us));
    if (first.index() == 0 && !source.add(std::get<0>(first), got)) co_return;
  }
}

template <class Of>
struct numbers_of {
  using value = std::optional<int>;
  Of from;
  bool add(const value& came, tally& got) const { return got.add(came); }
};
struct of_channel : numbers_of<channel<int>> {
  static task<> fill(channel<int> to, int count) {
    for (int i = 0; i < count; ++i) {
      co_await to.send(i);
      if (pauses(i)) co_await sleep_for(30us);
    }
    to.close();
  }
  explicit of_channel(int count) : numbers_of{channel<int>::bounded(4)} {
    spawn(fill(from, count));
  }
  auto next() { return from.receive(); }
};
struct of_limited_channel : of_channel {
  using of_channel::of_channel;
  auto next() { return from.receive().timeout(1h); }
};
// Its send happens once.
struct of_select : of_channel {
  using of_channel::of_channel;
  using value = std::variant<std::optional<int>, std::monostate>;
  auto next() { return select(from.receive(), full.send(1)); }
  bool add(const value& came, tally& got) const {
    return came.index() == 1 || got.add(std::get<0>(came));
  }
  channel<int> full = channel<int>::bounded(1);
};
struct of_generator : numbers_of<async_generator<int>> {
  static async_generator<int> numbers(int count) {
    for (int i = 0; i < count; ++i) {
      if (pauses(i)) co_await sleep_for(30us);
      co_yield i;
    }
  }
  explicit of_generator(int count) : numbers_of{numbers(count)} {}
  auto next() { return from.next(); }
};
struct of_limited_generator : of_generator {
  using of_generator::of_generator;
  auto next() { return from.next().timeout(1h); }
};
// The numbers are bytes.
struct of_pipe {
  using value = std::size_t;
  static task<> fill(pipe_stream to, int count) {
    for (int i = 0; i < count; ++i) {
      const std::string piece(1, static_cast<char>(i));
      co_await to.write_all(piece);
      if (pauses(i)) co_await sleep_for(30us);
    }
  }
  explicit of_pipe(int count) {
    auto [reader, writer] = pipe_stream::make();
    from = std::move(reader);
    spawn(fill(std::move(writer), count));
  }
  auto next() { return from.read(*buffer); }
  bool add(std::size_t bytes, tally& got) const {
    for (const char byte : std::string_view(buffer->data(), bytes)) {
      const int turns = got.next / 256 * 256;
      got.add(turns + static_cast<unsigned char>(byte));
    }
    return bytes != 0;
  }
  pipe_stream from;
  std::unique_ptr<std::array<char, 3>> buffer = std::make_unique<std::array<char, 3>>();
};
struct of_limited_pipe : of_pipe {
  using of_pipe::of_pipe;
  auto next() { return from.read(*buffer).timeout(1h); }
};

template <class Source>
task<> make_and_take_all(int count, tally& got) {
  Source source(count);
  co_await take_all(std::move(source), got);
}

struct named_check {
  const char* name;
  task<> (*takes)(int count, tally& got);
};
constexpr named_check checks[] = {
    {"channel", &make_and_take_all<of_channel>},
    {"channel, limited", &make_and_take_all<of_limited_channel>},
    {"select", &make_and_take_all<of_select>},
    {"generator", &make_and_take_all<of_generator>},
    {"generator, limited", &make_and_take_all<of_limited_generator>},
    {"pipe", &make_and_take_all<of_pipe>},
    {"pipe, limited", &make_and_take_all<of_limited_pipe>},
};

TEST_P(given_up_in_helpers, each_source_gives_all_its_values) {
  const int count = fewer(400, 40);
  std::array<tally, std::size(checks)> got;
  std::vector<future<>> done;
  runtime rt(options());
  for (std::size_t i = 0; i < got.size(); ++i)
    done.push_back(rt.spawn(checks[i].takes(count, got[i])));
  rt.run();
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NO_THROW(done[i].get()) << checks[i].name;
    EXPECT_EQ(got[i].taken, count) << checks[i].name;
    EXPECT_TRUE(got[i].is_in_order) << checks[i].name;
  }
}

// The wait is in a task of the user's, which has taken its value when it ends.
TEST_P(given_up_in_helpers, each_task_that_has_won_gives_all_its_values) {
  std::vector<named_source> all = sync_sources();
  for (const named_source& each : kit_sources()) all.push_back(each);
  for (const named_source& each : stream_sources()) all.push_back(each);
  check_in_helpers(options(), all, fewer(100, 10));
}

// What has moved something when it ends, and notes that it has.
struct mover {
  explicit mover(std::string called) : name(std::move(called)) {}
  mover(const mover&) = delete;
  mover& operator=(const mover&) = delete;
  virtual ~mover() = default;
  virtual task<> move() = 0;
  // A call that is cancelled has lost, and may have moved something all the same.
  task<> move_and_note() {
    co_await move();
    const bool has_lost = co_await tasks::being_cancelled();
    if (!has_lost) ++moved;
  }
  virtual task<> end() { co_return; }
  const std::string name;
  int moved = 0;
};
struct of_write final : mover {
  of_write() : mover("write") {
    std::tie(from, to) = pipe_stream::make();
    taken = spawn(take_all(from));
  }
  static task<> take_all(pipe_stream& from) {
    std::array<char, 64> buffer{};
    for (;;) {
      const std::size_t bytes = co_await from.read(buffer);
      if (bytes == 0) co_return;
    }
  }
  task<> move() override { co_await to.write_all(std::string_view("text")); }
  task<> end() override {
    to.close();
    co_await std::move(taken);
  }
  pipe_stream from, to;
  future<> taken;
};
struct of_ask final : mover {
  struct counter {
    int next() { return ++count; }
    int count = 0;
  };
  of_ask() : mover("ask") {}
  task<> move() override { co_await to.ask<&counter::next>(); }
  const ref<counter> to = spawn<counter>();
};
struct of_blocking final : mover {
  of_blocking() : mover("blocking") {}
  task<> move() override {
    co_await blocking([] {});
  }
};
struct of_send final : mover {
  of_send() : mover("send") { spawn(take_all(to)); }
  static task<> take_all(channel<int> from) {
    for (;;) {
      const std::optional<int> got = co_await from.receive();
      if (!got) co_return;
    }
  }
  ~of_send() override { to.close(); }
  task<> move() override { co_await to.send(1); }
  const channel<int> to = channel<int>::rendezvous();
};
// Its value is behind two waits.
struct of_two_waits final : mover {
  of_two_waits() : mover("two waits") {}
  task<> move() override {
    co_await yield();
    co_await sleep_for(20us);
  }
};

constexpr std::size_t movers = 5;

// Whether the branch that has won is the one whose task has ended, each time: the mover at that
// place beside each of them.
task<> check_movers(std::size_t place, int count) {
  std::vector<std::unique_ptr<mover>> all;
  all.push_back(std::make_unique<of_write>());
  all.push_back(std::make_unique<of_ask>());
  all.push_back(std::make_unique<of_blocking>());
  all.push_back(std::make_unique<of_send>());
  all.push_back(std::make_unique<of_two_waits>());
  EXPECT_EQ(all.size(), movers);
  mover& one = *all.at(place);
  for (const auto& other : all) {
    for (int i = 0; i < count; ++i) {
      const int moved_before = one.moved, other_before = other->moved;
      task<> first = in_helpers<void>(one.move_and_note(), 1 + i % (helper_ways - 1));
      task<> second = in_helpers<void>(other->move_and_note(), i / 3 % helper_ways);
      const auto won =
          co_await when_any(std::move(first), std::move(second), sleep_for(i % 9 * 20us));
      const int of_one = one.moved - moved_before, of_other = other->moved - other_before;
      const int expected = won.index() == 2 ? 0 : 1;
      if (&one == other.get()) {
        EXPECT_EQ(of_one, expected) << one.name << " twice, " << i;
      } else {
        EXPECT_EQ(of_one, won.index() == 0 ? 1 : 0) << one.name << ' ' << other->name << i;
        EXPECT_EQ(of_other, won.index() == 1 ? 1 : 0) << one.name << ' ' << other->name << i;
      }
    }
  }
  for (const auto& each : all) co_await each->end();
}

TEST_P(given_up_in_helpers, a_task_that_has_ended_there_wins) {
  runtime rt(options());
  std::vector<future<>> done;
  for (std::size_t i = 0; i < movers; ++i) done.push_back(rt.spawn(check_movers(i, fewer(60, 4))));
  rt.run();
  for (future<>& each : done) each.get();
}

// The branch beside it needs no end of the helper's loser, and is not held longer.
TEST_P(given_up_in_helpers, a_branch_that_was_held_runs_on) {
  runtime rt(options());
  std::vector<int> order;
  auto done = rt.spawn([](std::vector<int>& to) -> task<> {
    const auto ends_at_once = []() -> task<> { co_return; };
    const auto works_on = [&]() -> task<> {
      for (int i = 0; i < 20; ++i) {
        co_await in_helper<void>(ends_at_once(), i % 2 == 0);
        to.push_back(0);
      }
      co_await sleep_for(1h);
    };
    const auto beside = [&]() -> task<> {
      for (int i = 0; i < 20; ++i) {
        co_await yield();
        to.push_back(1);
      }
      co_await sleep_for(20ms);
    };
    static_cast<void>(co_await when_any(works_on(), beside()));
  }(order));
  rt.run();
  done.get();
  EXPECT_EQ(std::count(order.begin(), order.end(), 1), 20);
}

TROUPE_TEST_EACH(given_up_in_helpers, each_policy);

}  // namespace
}  // namespace troupe::test
