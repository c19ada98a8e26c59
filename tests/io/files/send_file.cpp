// sendfile: sends a range of a file to a stream, and what can end that early.
#include <chrono>

#include "support/io.hpp"
#include "support/open_files.hpp"
#include "support/scratch.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t great = 1'000'000;

std::string pattern(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 131 >> 5);
  return text;
}

class io_send_file : public io_conformance {
 protected:
  io_send_file() : path(folder.put("great", pattern(great))) {}

  struct pair {
    tcp_stream mine, theirs;
  };
  static task<pair> connected() {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    pair made;
    made.mine = co_await tcp_stream::connect(listener.local());
    made.theirs = co_await listener.accept();
    co_return made;
  }
  static task<> collect(tcp_stream from, std::string& all) {
    std::array<char, 10'000> part;
    for (;;) {
      const std::size_t bytes = co_await from.read(part);
      if (bytes == 0) co_return;
      all.append(part.data(), bytes);
    }
  }
  template <class Make>
  void run(Make make) {
    const int before = open_files();
    {
      runtime rt(options());
      rt.spawn(make(rt));
      rt.run();
    }
    EXPECT_EQ(open_files(), before);
  }

  scratch folder;
  const std::string path;
};

TEST_P(io_send_file, a_file_and_ranges_of_it_arrive_whole) {
  std::string all;
  auto program = [&](runtime& rt) -> task<> {
    pair ends = co_await connected();
    rt.spawn(collect(std::move(ends.theirs), all));
    file from = co_await file::open(path);
    co_await ends.mine.write_all("head:");
    const std::size_t sent = co_await ends.mine.send_file(from, 0, great);
    EXPECT_EQ(sent, great);
    co_await ends.mine.send_file(from, 17, 1'000).timeout(10s);
    co_await ends.mine.send_file(from, great - 1, 1);
    const std::size_t nothing = co_await ends.mine.send_file(from, great, 0);
    EXPECT_EQ(nothing, 0u);
    co_await ends.mine.write_all(":tail");
  };
  run(program);
  const std::string text = pattern(great);
  EXPECT_TRUE(all == "head:" + text + text.substr(17, 1'000) + text.substr(great - 1) + ":tail")
      << all.size();
}

TEST_P(io_send_file, a_file_that_is_shorter_says_how_much_was_sent) {
  std::string all;
  auto program = [&](runtime& rt) -> task<> {
    pair ends = co_await connected();
    rt.spawn(collect(std::move(ends.theirs), all));
    file from = co_await file::open(path);
    std::size_t sent = 0;
    try {
      co_await ends.mine.send_file(from, great - 300, 1'000);
    } catch (const end_of_file& e) {
      sent = e.bytes();
      EXPECT_NE(std::string(e.what()).find(path), std::string::npos);
    }
    EXPECT_EQ(sent, 300u);
  };
  run(program);
  EXPECT_TRUE(all == pattern(great).substr(great - 300));
}

TEST_P(io_send_file, a_peer_that_has_gone_is_a_typed_error) {
  auto program = [&](runtime&) -> task<> {
    pair ends = co_await connected();
    co_await ends.mine.write_all("not read");
    std::array<char, 1> first;
    co_await ends.theirs.read_exact(first);
    ends.theirs.close();
    file from = co_await file::open(path);
    bool refused = false;
    try {
      for (int i = 0; i < 20; ++i) co_await ends.mine.send_file(from, 0, great).timeout(10s);
    } catch (const io_error& e) {
      refused = e.code() == std::errc::broken_pipe || e.code() == std::errc::connection_reset;
    }
    EXPECT_TRUE(refused);
  };
  run(program);
}

TEST_P(io_send_file, a_peer_that_does_not_read_is_given_up) {
  auto program = [&](runtime&) -> task<> {
    pair ends = co_await connected();
    file from = co_await file::open(path);
    bool late = false;
    try {
      for (int i = 0; i < 50; ++i) co_await ends.mine.send_file(from, 0, great).timeout(5ms);
    } catch (const timed_out&) {
      late = true;
    }
    EXPECT_TRUE(late);
  };
  run(program);
}

TEST_P(io_send_file, a_pipe_takes_it_as_well) {
  std::string all;
  auto drains = [&all](pipe_stream from) -> task<> {
    std::array<char, 5'000> part;
    for (;;) {
      const std::size_t bytes = co_await from.read(part);
      if (bytes == 0) co_return;
      all.append(part.data(), bytes);
    }
  };
  auto program = [&](runtime& rt) -> task<> {
    auto ends = pipe_stream::make();
    rt.spawn(drains(std::move(ends.first)));
    file from = co_await file::open(path);
    co_await ends.second.send_file(from, 0, great);
  };
  run(program);
  EXPECT_TRUE(all == pattern(great)) << all.size();
}

}  // namespace

TROUPE_IO_TEST_EACH(io_send_file);

}  // namespace troupe::test
