// What is outside of a simulation takes real time: virtual time does not jump while an operation
// waits for it.
#include <unistd.h>

#include <array>
#include <chrono>
#include <span>
#include <thread>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

runtime_options simulation() {
  runtime_options chosen;
  chosen.policy = policy::simulated;
  return chosen;
}

TEST(real_time_simulated, a_pipe_from_another_thread_comes_before_a_late_limit) {
  runtime rt(simulation());
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::thread writer([to = ends[1]] {
    std::this_thread::sleep_for(30ms);  // sleeps: the reader has to wait in real time
    EXPECT_EQ(::write(to, "x", 1), 1);
    ::close(to);
  });
  std::size_t got = 0;
  auto body = [&]() -> task<> {
    pipe_stream in = pipe_stream::adopt(ends[0]);
    std::array<char, 8> bytes;
    got = co_await in.read(std::span<char>(bytes)).timeout(60s);
  };
  rt.spawn(body());
  rt.run();
  writer.join();
  EXPECT_EQ(got, 1u);
  EXPECT_LT(rt.now(), 60s);
}

TEST(real_time_simulated, a_child_process_ends_before_a_late_limit) {
  runtime rt(simulation());
  bool ended = false;
  auto body = [&]() -> task<> {
    process child = process::start("sleep", {"0.03"});
    const exit_status status = co_await child.wait().timeout(60s);
    ended = status.success();
  };
  rt.spawn(body());
  rt.run();
  EXPECT_TRUE(ended);
  EXPECT_LT(rt.now(), 60s);
}

TEST(real_time_simulated, a_limit_is_over_when_nothing_comes) {
  runtime rt(simulation());
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  bool over = false;
  auto body = [&]() -> task<> {
    pipe_stream in = pipe_stream::adopt(ends[0]);
    std::array<char, 8> bytes;
    try {
      co_await in.read(std::span<char>(bytes)).timeout(20ms);
    } catch (const timed_out&) {
      over = true;
    }
  };
  const auto began = std::chrono::steady_clock::now();
  rt.spawn(body());
  rt.run();
  EXPECT_TRUE(over);
  EXPECT_GE(std::chrono::steady_clock::now() - began, 15ms);
  ::close(ends[1]);
}

TEST(real_time_simulated, timers_alone_take_none) {
  runtime rt(simulation());
  auto body = []() -> task<> { co_await sleep_for(24h); };
  const auto began = std::chrono::steady_clock::now();
  rt.spawn(body());
  rt.run();
  EXPECT_GE(rt.now(), 24h);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
}

}  // namespace
}  // namespace troupe::test
