// Reads that are given up, at whatever step they are.
#include "tls/support.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class tls_given_up : public tls_conformance {};

// Bytes go both ways at once, in parts of all sizes.
TEST_P(tls_given_up, reads_that_are_given_up_lose_nothing) {
  auto read_in_tries = [](tls_stream& from, unsigned seed, int& late) -> task<std::string> {
    std::string all;
    std::vector<char> buffer(20'000);
    unsigned state = seed;
    for (;;) {
      state = state * 1103515245 + 12345;
      const std::span<char> part(buffer.data(),
                                 1 + (state >> 8) % ((state >> 4) % 3 == 0 ? buffer.size() : 100));
      std::size_t bytes = 0;
      bool came = true;
      try {
        bytes = co_await from.read(part).timeout(std::chrono::microseconds((state >> 16) % 4 * 40));
      } catch (const timed_out&) {
        came = false;
      }
      if (!came) ++late;
      if (came && bytes == 0) co_return all;
      all.append(part.data(), bytes);
    }
  };
  auto send_in_parts = [](tls_stream& to, std::string bytes) -> task<> {
    std::size_t size = 1;
    for (std::string_view left = bytes; !left.empty(); size = size * 3 % 40'009) {
      const std::size_t part = std::min(size, left.size());
      co_await to.write_all(left.substr(0, part));
      co_await to.write_all(std::string_view());
      left.remove_prefix(part);
      if (size % 5 == 0) co_await sleep_for(200us);
    }
    co_await to.shutdown();
  };
  auto exchange = [&]() -> task<> {
    tls_pair pair = co_await make_good_pair();
    const std::string bytes = some_bytes(static_cast<std::size_t>(fewer(600'000, 4)));
    int late_there = 0, late_here = 0;
    auto all = when_all(read_in_tries(pair.client, 1, late_there),
                        read_in_tries(pair.server, 2, late_here), send_in_parts(pair.client, bytes),
                        send_in_parts(pair.server, bytes));
    auto [there, here, sent, sent_back] = co_await std::move(all);
    EXPECT_TRUE(there == bytes) << there.size();
    EXPECT_TRUE(here == bytes) << here.size();
    EXPECT_GT(late_there + late_here, 0);
  };
  run(exchange());
}

TEST_P(tls_given_up, what_a_read_of_so_many_bytes_has_got_is_not_lost) {
  auto send = [](tls_stream& to, event is_late) -> task<> {
    co_await to.write_all("abc");
    co_await is_late.wait();
    co_await to.write_all("defghi");
  };
  auto receive = [](tls_stream& from, event is_late) -> task<std::string> {
    std::array<char, 6> room{};
    bool came = true;
    try {
      co_await from.read_exact(std::span<char>(room)).timeout(50ms);
    } catch (const timed_out&) {
      came = false;
    }
    EXPECT_FALSE(came);
    is_late.set();
    co_await from.read_exact(std::span<char>(room)).timeout(20s);
    std::string all(room.data(), room.size());
    co_await from.read_exact(std::span<char>(room).first(3)).timeout(20s);
    co_return all.append(room.data(), 3);
  };
  auto exchange = [&]() -> task<> {
    tls_pair pair = co_await make_good_pair();
    event is_late;
    auto all = when_all(send(pair.server, is_late), receive(pair.client, is_late));
    auto [sent, got] = co_await std::move(all);
    EXPECT_EQ(got, "abcdefghi");
  };
  run(exchange());
}

// Each line by a stream of lines of its own, over a TLS stream that is borrowed.
TEST_P(tls_given_up, lines_that_are_dropped_give_the_bytes_back) {
  auto send = [](tls_stream& to, int count) -> task<> {
    std::string piece;
    for (int i = 0; i < count; ++i) {
      piece += std::to_string(i) + "\r\n";
      if (i % 3 == 1) continue;
      const std::size_t part = piece.size() - static_cast<std::size_t>(i % 4);
      co_await to.write_all(std::string_view(piece).substr(0, part));
      piece.erase(0, part);
      if (i % 5 == 0) co_await sleep_for(100us);
    }
    co_await to.write_all(piece);
    co_await to.shutdown();
  };
  auto receive = [](tls_stream& from, int count) -> task<> {
    const auto take_one = [](tls_stream& borrowed) -> task<std::optional<std::string>> {
      auto one = streams::lines(borrowed) | streams::take(1);
      co_return co_await one.next();
    };
    for (int next = 0, i = 0;; ++i) {
      auto first = co_await when_any(take_one(from), sleep_for(i % 5 * 30us));
      if (first.index() == 1) continue;
      const std::optional<std::string>& line = std::get<0>(first);
      if (!line) {
        EXPECT_EQ(next, count);
        co_return;
      }
      EXPECT_EQ(*line, std::to_string(next++));
    }
  };
  auto exchange = [&]() -> task<> {
    tls_pair pair = co_await make_good_pair();
    const int count = fewer(1'000, 10);
    auto all = when_all(send(pair.server, count), receive(pair.client, count));
    co_await std::move(all);
  };
  run(exchange());
}

TROUPE_TLS_TEST_EACH(tls_given_up);

}  // namespace
}  // namespace troupe::test
