// A wait in a helper, whose competitor ends late, while the helper itself loses.
#include <thread>

#include "given_up/sources.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class given_up_in_helpers : public conformance {};

// Runs on another worker, and cannot be cancelled meanwhile.
task<> takes_a_while() {
  std::this_thread::sleep_for(100us);  // sleeps: a child that nothing cancels
  co_return;
}
// If it has lost, it still ends only when its child has.
task<> ends_late() {
  co_await scope([](task_scope& s) { s.spawn_parallel(takes_a_while()); });
  co_await sleep_for(1h);
}

// The inner when_any has its value, and waits for its loser; by then the helper may have lost.
template <class Value, class Wait>
task<Value> through_helper(Wait wait, bool begins_first) {
  if (begins_first) {
    auto first = co_await when_any(std::move(wait), ends_late());
    co_return std::get<0>(std::move(first));
  }
  auto first = co_await when_any(ends_late(), std::move(wait));
  co_return std::get<1>(std::move(first));
}

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
    auto first = co_await when_any(through_helper<value>(source.next(), i % 2 == 0),
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
  for (const named_check& each : checks) {
    tally got;
    runtime rt(options());
    auto done = rt.spawn(each.takes(count, got));
    rt.run();
    EXPECT_NO_THROW(done.get()) << each.name;
    EXPECT_EQ(got.taken, count) << each.name;
    EXPECT_TRUE(got.is_in_order) << each.name;
  }
}

TROUPE_TEST_EACH(given_up_in_helpers, each_policy);

}  // namespace
}  // namespace troupe::test
