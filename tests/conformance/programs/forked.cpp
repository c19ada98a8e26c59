// A child of fork(), which has only the thread that called it, makes a runtime of its own while the
// runtime of its parent works.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <thread>
#include <vector>

#include "observe/flight/recorder.hpp"
#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

#if defined(__SANITIZE_THREAD__)
constexpr bool has_thread_sanitizer = true;
#elif defined(__has_feature)
constexpr bool has_thread_sanitizer = __has_feature(thread_sanitizer);
#else
constexpr bool has_thread_sanitizer = false;
#endif

struct Adder {
  int sum = 0;
  int add(int n) { return sum += n; }
};

// Actors, asks, sleeps, lazies and blocking calls: 0 if all of them gave what they should.
int use_all(const runtime_options& options) {
  runtime rt(options);
  auto asks = [](runtime& on) -> task<int> {
    const ref<Adder> of = on.spawn<Adder>();
    for (int i = 1; i <= 100; ++i) co_await of.ask<&Adder::add>(i);
    co_await sleep_for(1ms);
    auto blocks = blocking([] { return 7; });
    const int seven = co_await std::move(blocks);
    co_return seven + co_await of.ask<&Adder::add>(0);
  };
  auto sum = rt.spawn(asks(rt));
  rt.run();
  lazy<int> late([] { return 8; });
  return sum.get() == 5'050 + 7 && late.get() == 8 ? 0 : 1;
}

task<> be_busy(std::shared_ptr<std::atomic<bool>> end) {
  while (!end->load()) {
    std::vector<std::unique_ptr<int>> some;
    for (int i = 0; i < 64; ++i) some.push_back(std::make_unique<int>(i));
    const ref<Adder> of = spawn<Adder>();
    co_await of.ask<&Adder::add>(1);
    co_await yield();
  }
}

// In a child, a hang ends it.
constexpr unsigned child_seconds_max = 60;

int status_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// The flight recorders of threads but the calling one.
int recorders_of_others() {
  const observe::flight_recorder* const own = observe::flight_recorder::here();
  int count = 0;
  const observe::flight_recorder* recorder = observe::flight_recorder::first();
  for (; recorder != nullptr; recorder = recorder->next())
    count += recorder != own && recorder->is_in_use() ? 1 : 0;
  return count;
}

class forked : public conformance {};

TEST_P(forked, a_child_has_a_runtime_of_its_own) {
  if (has_thread_sanitizer) GTEST_SKIP() << "needs a build without ThreadSanitizer";
  if (!threaded()) GTEST_SKIP() << "needs threads";
  for (int i = 0; i < 20; ++i) {
    runtime rt(options());
    auto end = std::make_shared<std::atomic<bool>>(false);
    for (int n = 0; n < 2; ++n) rt.spawn(be_busy(end));
    rt.poll();
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(child_seconds_max);
      ::_exit(use_all(options()));
    }
    EXPECT_EQ(status_of(child), 0);
    end->store(true);
    rt.run();
  }
}

// The forks come while other threads make their recorders.
TEST_P(forked, a_child_has_flight_recorders_of_its_own) {
  if (has_thread_sanitizer) GTEST_SKIP() << "needs a build without ThreadSanitizer";
  if (!threaded()) GTEST_SKIP() << "needs threads";
  runtime_options recorded = options();
  recorded.flight_recorder_bytes = std::size_t{64} << 10;
  runtime rt(recorded);
  std::jthread makes_threads([](const std::stop_token& ends) {
    trace_mark("a thread has begun");
    while (!ends.stop_requested()) std::jthread([] { trace_mark("a thread has begun"); });
  });
  while (recorders_of_others() == 0) std::this_thread::yield();
  for (int i = 0; i < 50; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(child_seconds_max);
      ::_exit(recorders_of_others() != 0 ? 2 : use_all(recorded));
    }
    ASSERT_EQ(status_of(child), 0) << "fork " << i;
  }
}

TROUPE_TEST_EACH(forked, each_policy);

}  // namespace
}  // namespace troupe::test
