// A child of fork(), which has only the thread that called it, makes a runtime of its own while the
// runtime of its parent works.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

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
    if (child == 0) ::_exit(use_all(options()));
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    EXPECT_EQ(status, 0);
    end->store(true);
    rt.run();
  }
}

TROUPE_TEST_EACH(forked, each_policy);

}  // namespace
}  // namespace troupe::test
