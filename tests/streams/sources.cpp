// Streams of connections, files, channels and actors: whole lines and frames, however the bytes
// come and however a wait ends; an operation that a dropped stream leaves behind ends by itself.
#include <filesystem>
#include <fstream>

#include "io/suspensions/at_once.hpp"
#include "support/counted.hpp"
#include "support/io.hpp"
#include "support/scratch.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class stream_sources : public io_conformance {};

struct both_ends {
  tcp_stream near, far;
};
task<both_ends> connected() {
  auto listener = tcp_listener::listen(endpoint::loopback(0));
  auto accept = listener.accept();
  auto connect = tcp_stream::connect(listener.local());
  auto [far, near] = co_await when_all(std::move(accept), std::move(connect));
  both_ends both;
  both.near = std::move(near);
  both.far = std::move(far);
  co_return both;
}
// Writes the text in small parts.
task<> write_slowly(tcp_stream& to, std::string text, std::size_t part) {
  for (std::size_t at = 0; at < text.size(); at += part) {
    co_await to.write_all(std::string_view(text).substr(at, part));
    co_await sleep_for(20us);
  }
  to.close();
}
task<std::vector<std::string>> taken(async_generator<std::string> of,
                                     std::chrono::nanoseconds span) {
  std::vector<std::string> all;
  for (;;) {
    bool late = false;
    std::optional<std::string> one;
    try {
      one = co_await of.next().timeout(span);
    } catch (const timed_out&) {
      late = true;
    }
    if (!late && !one) break;
    if (!late) all.push_back(std::move(*one));
  }
  co_return all;
}

task<> reads_lines(std::size_t part, std::chrono::nanoseconds span) {
  both_ends both = co_await connected();
  auto writes =
      write_slowly(both.far, "one\ntwo\r\n\nfour\n" + std::string(300, 'x') + "\nlast", part);
  auto reads = taken(streams::lines(both.near), span);
  const auto [nothing, found] = co_await when_all(std::move(writes), std::move(reads));
  const std::vector<std::string> expected{"one", "two", "", "four", std::string(300, 'x'), "last"};
  EXPECT_EQ(found, expected);
}

TEST_P(stream_sources, give_lines) {
  for (const std::size_t part : {1u, 7u, 1000u}) {
    for (const auto span : {1h + 0us, 0h + 15us}) run(reads_lines(part, span));
  }
}

std::string framed(const std::string& body) {
  std::string all;
  for (int shift = 24; shift >= 0; shift -= 8)
    all += static_cast<char>(static_cast<unsigned char>(body.size() >> shift));
  return all + body;
}
task<> reads_frames(std::size_t part) {
  both_ends both = co_await connected();
  const std::vector<std::string> expected{"a", "", std::string(600, 'b'), "c"};
  std::string text;
  for (const std::string& one : expected) text += framed(one);
  auto writes = write_slowly(both.far, text, part);
  auto reads = taken(streams::frames(std::move(both.near)), 1h);
  const auto [nothing, found] = co_await when_all(std::move(writes), std::move(reads));
  EXPECT_EQ(found, expected);
}

TEST_P(stream_sources, give_frames) {
  for (const std::size_t part : {1u, 5u, 1000u}) run(reads_frames(part));
}

task<> refuses(std::string text, bool frames) {
  both_ends both = co_await connected();
  co_await both.far.write_all(std::move(text));
  both.far.close();
  auto all = frames ? streams::frames(both.near, 10) : streams::lines(both.near, 10);
  const auto first = co_await all.next();
  EXPECT_EQ(first.value(), "ok");
  bool refused = false;
  try {
    static_cast<void>(co_await all.next());
  } catch (const error&) {
    refused = true;
  }
  EXPECT_TRUE(refused);
  const auto after = co_await all.next();
  EXPECT_FALSE(after.has_value());
}

TEST_P(stream_sources, refuse_what_is_too_long_or_cut) {
  run(refuses("ok\n12345678901\n", false));
  run(refuses("ok\n123456789012345", false));
  run(refuses(framed("ok") + framed("12345678901"), true));
  run(refuses(framed("ok") + framed("1234567890").substr(0, 8), true));
  run(refuses(framed("ok") + framed("x").substr(0, 2), true));
}

// A read is under way when its stream is dropped.
task<> drops_while_it_reads() {
  counted here;
  both_ends both = co_await connected();
  {
    auto all = streams::lines(std::move(both.near)) |
               streams::map([kept = counted()](std::string line) { return line.size(); });
    bool late = false;
    try {
      static_cast<void>(co_await all.next().timeout(50us));
    } catch (const timed_out&) {
      late = true;
    }
    EXPECT_TRUE(late);
  }
  co_await sleep_for(100us);
}
task<> drops_at_its_end() {
  counted here;
  both_ends both = co_await connected();
  auto all = streams::lines(std::move(both.near)) | streams::chunks(10, 10us);
  co_await both.far.write_all("one\n");
  const auto first = co_await all.next();
  EXPECT_EQ(first.value().at(0), "one");
}

TEST_P(stream_sources, leave_no_read_behind) {
  for (int i = 0; i < 3; ++i) {
    run(drops_while_it_reads());
    run(drops_at_its_end());
  }
  EXPECT_EQ(live.load(), 0);
}

// What happens to a stream while a reader that borrows it waits, in a turn in which the rest of the
// value has come already.
enum class loss { moved, closed, destroyed };

struct borrowing_reader {
  const char* name;
  async_generator<std::string> (*make)(tcp_stream& from);
  std::string_view first, rest;
};
const borrowing_reader borrowing_readers[] = {
    {"lines", [](tcp_stream& from) { return streams::lines(from); }, "hel", "lo\n"},
    {"frames", [](tcp_stream& from) { return streams::frames(from); },
     std::string_view("\0\0\0\5hel", 7), "lo"},
    {"blocks", [](tcp_stream& from) { return streams::blocks(from, 10); }, "hel", "lo"},
};

task<> loses_its_stream(const borrowing_reader& reader, loss how) {
  both_ends both = co_await connected();
  auto from = std::make_unique<tcp_stream>(std::move(both.near));
  tcp_stream other;
  auto all = std::make_unique<async_generator<std::string>>(reader.make(*from));
  co_await both.far.write_all(reader.first);
  for (int i = 0; i < 2; ++i) {
    auto either = when_any(all->next(), sleep_for(2ms));
    static_cast<void>(co_await std::move(either));
  }
  static_cast<void>(io::at_once::write(both.far, reader.rest));
  const auto until = std::chrono::steady_clock::now() + 1ms;  // a worker serves the event meanwhile
  while (std::chrono::steady_clock::now() < until) {
  }
  if (how == loss::destroyed) all.reset();
  if (how == loss::moved) other = std::move(*from);
  if (how == loss::closed) from->close();
  if (how == loss::destroyed) from.reset();
  try {
    if (all != nullptr) static_cast<void>(co_await all->next().timeout(5ms));
  } catch (const timed_out&) {
  } catch (const error&) {  // the stream is closed
  }
  all.reset();
  co_await sleep_for(1ms);
}

TEST_P(stream_sources, may_lose_the_stream_that_they_borrow) {
  for (const borrowing_reader& reader : borrowing_readers) {
    for (const loss how : {loss::moved, loss::closed, loss::destroyed}) {
      SCOPED_TRACE(reader.name);
      for (int i = 0; i < 3; ++i) run(loses_its_stream(reader, how));
    }
  }
}

struct line_reader {
  std::optional<async_generator<std::string>> all;
  tcp_stream other;
  task<> begin() {
    both_ends both = co_await connected();
    other = std::move(both.far);
    all = streams::lines(std::move(both.near));
    try {
      static_cast<void>(co_await all->next().timeout(50us));
    } catch (const timed_out&) {
    }
  }
};

// The actor stops, or the runtime ends, while a stream waits that no call waits for.
TEST_P(stream_sources, end_with_their_actor_and_runtime) {
  const int before = open_files();
  for (const bool stops : {false, true}) {
    runtime rt(options());
    auto one = rt.spawn<line_reader>();
    one.tell<&line_reader::begin>();
    rt.after(2ms, [&rt, one, stops] { stops ? one.stop() : rt.stop(); });
    rt.run();
  }
  EXPECT_EQ(open_files(), before);
}

task<> reads_file(std::string path, std::size_t count) {
  file from = co_await file::open(path);
  std::size_t sum = 0;
  auto all = streams::lines(std::move(from));
  while (auto line = co_await all.next()) sum += std::stoul(*line);
  EXPECT_EQ(sum, count * (count - 1) / 2);
  file again = co_await file::open(path);
  const std::size_t bytes =
      co_await (streams::blocks(again, 1000) |
                streams::fold(std::size_t{0}, [](std::size_t n, const std::string& block) {
                  return n + block.size();
                }));
  const std::uint64_t size = co_await again.size();
  EXPECT_EQ(bytes, size);
}

TEST_P(stream_sources, read_files) {
  const scratch folder;
  const std::size_t count = fewer(100'000, 10);
  {
    std::ofstream to(folder / "numbers");
    for (std::size_t i = 0; i < count; ++i) to << i << '\n';
  }
  run(reads_file(folder / "numbers", count));
}

task<> sends(channel<int> to, int count) {
  for (int i = 0; i < count; ++i) {
    co_await to.send(i);
    if (i % 7 == 0) co_await sleep_for(10us);
  }
  to.close();
}
task<> receives(channel<int> from, int count, std::chrono::nanoseconds span) {
  auto all = from | streams::map([](int n) { return n; });
  int next = 0;
  for (;;) {
    bool late = false;
    std::optional<int> one;
    try {
      one = co_await all.next().timeout(span);
    } catch (const timed_out&) {
      late = true;
    }
    if (late) continue;
    if (!one) break;
    if (*one != next++) ADD_FAILURE() << *one;
  }
  EXPECT_EQ(next, count);
}
task<> from_channels(int count, std::chrono::nanoseconds span) {
  for (const std::size_t capacity : {0u, 1u, 10u}) {
    auto between = capacity == 0 ? channel<int>::rendezvous() : channel<int>::bounded(capacity);
    auto one = sends(between, count);
    auto other = receives(between, count, span);
    static_cast<void>(co_await when_all(std::move(one), std::move(other)));
  }
  auto whole = channel<int>::bounded(2);
  auto [to, from] = whole.split();
  co_await to.send(1);
  to.close();
  const auto all = co_await (std::move(from) | streams::collect());
  EXPECT_EQ(all, std::vector{1});
}

TEST_P(stream_sources, receive_from_channels) {
  for (const auto span : {1h + 0us, 0h + 8us}) run(from_channels(fewer(500), span));
}

struct pile {
  int left = 3, asked = 0;
  std::optional<int> take() { return left == 0 ? std::nullopt : std::optional(left--); }
  int count(int by) { return asked += by; }
};
task<> asks(ref<pile> one) {
  const auto all = co_await (streams::answers<&pile::take>(one) | streams::collect());
  const std::vector expected{3, 2, 1};
  EXPECT_EQ(all, expected);
  const auto counts =
      co_await (streams::answers<&pile::count>(one, 2) | streams::take(3) | streams::collect());
  const std::vector by_two{2, 4, 6};
  EXPECT_EQ(counts, by_two);
}

TEST_P(stream_sources, ask_actors) {
  runtime rt(options());
  rt.spawn(asks(rt.spawn<pile>()));
  rt.run();
}

TROUPE_IO_TEST_EACH(stream_sources);

}  // namespace
}  // namespace troupe::test
