// A network that delays, cuts up, resets, half-closes and swallows: what arrives is what was sent,
// as far as it arrives. A task that waits gets a typed error when nothing more arrives, and nothing
// is left behind.
#include "support/chaos_proxy.hpp"
#include "support/io.hpp"
#include "support/open_files.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class io_chaos : public io_conformance {};

constexpr auto far = 30s;  // a wait that takes this long hangs
constexpr std::size_t bytes_each_way = 3'000;

std::string some_bytes(std::size_t count, unsigned state) {
  std::string bytes(count, '\0');
  for (char& one : bytes) one = static_cast<char>((state = state * 1103515245 + 12345) >> 16);
  return bytes;
}

// What one side has received, and how it ended.
struct outcome {
  std::string got;
  bool ended = false;  // by the end of the stream
  bool failed = false, late = false;
  outcome() {}
};

task<outcome> reads(tcp_stream& from, std::chrono::nanoseconds patience) {
  outcome made;
  std::array<char, 512> buffer;
  try {
    for (;;) {
      const std::size_t bytes = co_await from.read(buffer).timeout(patience);
      if (bytes == 0) break;
      made.got.append(buffer.data(), bytes);
    }
    made.ended = true;
  } catch (const io_error&) {
    made.failed = true;
  } catch (const timed_out&) {
    made.late = true;
  }
  co_return made;
}

task<bool> writes(tcp_stream& to, std::string bytes, std::chrono::nanoseconds patience) {
  try {
    co_await to.write_all(std::move(bytes)).timeout(patience);
    to.shutdown_write();
    co_return true;
  } catch (const io_error&) {
  } catch (const timed_out&) {
  }
  co_return false;
}

// Sends back what comes, and gives up when nothing comes for this long.
task<> echo_for(tcp_stream peer, std::chrono::nanoseconds patience) {
  const counted alive;
  std::array<char, 1000> buffer;
  try {
    for (;;) {
      const std::size_t bytes = co_await peer.read(buffer).timeout(patience);
      if (bytes == 0) break;
      co_await peer.write_all(std::string_view(buffer.data(), bytes)).timeout(patience);
    }
  } catch (const io_error&) {
  } catch (const timed_out&) {
  }
}

task<> converse(runtime& rt, chaos does, std::uint64_t seed, std::atomic<int>& whole,
                std::atomic<int>& faults) {
  const counted alive;
  auto listener = tcp_listener::listen(endpoint::loopback(0));
  chaos_proxy proxy(listener.local(), does, seed, bytes_each_way);
  proxy.start(rt);
  const bool harmless = proxy.harmless(0);
  const std::chrono::nanoseconds patience = harmless ? std::chrono::nanoseconds(far) : 50ms;
  tcp_stream client = co_await tcp_stream::connect(proxy.at()).timeout(far);
  tcp_stream peer = co_await listener.accept().timeout(far);
  future<> serving = rt.spawn(echo_for(std::move(peer), patience));
  const std::string sent = some_bytes(bytes_each_way, static_cast<unsigned>(seed));
  auto both = when_all(writes(client, sent, patience), reads(client, patience));
  const auto [wrote, back] = co_await std::move(both);
  EXPECT_EQ(back.got, sent.substr(0, back.got.size()));
  EXPECT_TRUE(back.ended || back.failed || back.late);
  if (harmless) {
    EXPECT_TRUE(wrote && back.ended);
    EXPECT_EQ(back.got.size(), sent.size());
  }
  whole += back.got.size() == sent.size() ? 1 : 0;
  client.close();
  co_await std::move(serving);
  co_await proxy.join();
  EXPECT_EQ(proxy.seen.live.load(), 0);
  if (harmless) {
    EXPECT_EQ(proxy.seen.faults.load(), 0);
  }
  faults += proxy.seen.faults.load();
}

TEST_P(io_chaos, an_echo_is_right_as_far_as_it_comes) {
  for (const chaos does : all_chaos) {
    const int before = open_files();
    std::atomic<int> whole{0}, faults{0};
    const int seeds = does == chaos::mixed ? fewer(12) : fewer(4);
    {
      runtime rt(options());
      for (int seed = 1; seed <= seeds; ++seed)
        rt.spawn(converse(rt, does, static_cast<std::uint64_t>(seed) + 100 * GetParam().on.seed,
                          whole, faults));
      rt.run();
    }
    if (does == chaos::none || does == chaos::delays || does == chaos::single_bytes) {
      EXPECT_EQ(whole.load(), seeds) << name_of(does);
    } else if (does != chaos::mixed || !slow) {
      EXPECT_GT(faults.load(), 0) << name_of(does);
    }
    EXPECT_EQ(open_files(), before) << name_of(does);
    EXPECT_EQ(live.load(), 0) << name_of(does);
  }
}

// No side is told that the connection is dead: only the time limit ends the wait.
TEST_P(io_chaos, a_black_hole_is_a_timeout) {
  bool late = false;
  auto program = [](runtime& rt, bool& was_late) -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    for (std::uint64_t seed = 1;; ++seed) {
      chaos_proxy proxy(listener.local(), chaos::black_hole, seed, 1);
      if (proxy.plan(0).first.harmless()) continue;
      proxy.start(rt);
      tcp_stream client = co_await tcp_stream::connect(proxy.at());
      tcp_stream peer = co_await listener.accept();
      co_await client.write_all("hello");
      std::array<char, 8> none;
      try {
        co_await peer.read(none).timeout(5ms);
      } catch (const timed_out&) {
        was_late = true;
      }
      co_await proxy.join();
      break;
    }
  };
  runtime rt(options());
  rt.spawn(program(rt, late));
  rt.run();
  EXPECT_TRUE(late);
}

}  // namespace

TROUPE_IO_TEST_EACH(io_chaos);

}  // namespace troupe::test
