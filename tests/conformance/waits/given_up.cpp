// A wait that was cancelled is forgotten, however long its event takes to come.
#include "support/conformance.hpp"
#include "support/resident.hpp"

namespace troupe::test {
namespace {

class given_up : public conformance {};

struct sink {
  std::vector<int> seen;
  void put(int n) { seen.push_back(n); }
  std::vector<int> all() { return seen; }
  task<> hold(event until) { co_await until.wait(); }
};

task<> put(ref<sink> to, int n) { co_await to.send<&sink::put>(n); }
task<> soon() { co_await yield(); }
task<> gives_up(ref<sink> full, int times) {
  for (int i = 0; i < times; ++i) {
    auto never = put(full, -1), limit = soon();
    static_cast<void>(co_await when_any(std::move(never), std::move(limit)));
  }
}

TEST_P(given_up, a_wait_for_room) {
  if (slow) GTEST_SKIP() << "needs an unsanitized build: sanitizers have memory of their own";
  runtime rt(options());
  event go;
  auto full = rt.spawn<sink>({.mailbox = {1, when_full::suspend}});
  full.tell<&sink::hold>(go);
  EXPECT_THROW(rt.run(), stalled);
  full.tell<&sink::put>(0);
  auto kept = rt.spawn(put(full, 1));
  const auto give_up = [&rt, &full] {
    static_cast<void>(rt.spawn(gives_up(full, 50'000)));
    EXPECT_THROW(rt.run(), stalled);
    return resident_bytes();
  };
  const std::size_t before = give_up();
  EXPECT_LE(give_up(), before + 3'000'000) << "137 bytes each are 7 MB";
  go.set();
  rt.run();
  EXPECT_NO_THROW(kept.get());
  auto seen = full.ask<&sink::all>();
  rt.run();
  EXPECT_EQ(seen.get(), (std::vector{0, 1})) << "who waited all the time has sent";
}

// The callback has the last ref to its actor, which keeps the rest of the runtime.
TEST_P(given_up, what_a_callback_waits_for_comes_after_the_runtimes_end) {
  struct waiter {
    void wait_for(future<int> later) {
      later.then([](int) {}, [](const std::exception_ptr&) {});
    }
  };
  for (int i = 0; i < 10; ++i) {
    std::vector<promise<int>> promised(3);
    {
      runtime rt(options());
      for (auto& one : promised) rt.spawn<waiter>().tell<&waiter::wait_for>(one.get_future());
      rt.run();
    }
    for (auto& one : promised) one.set_value(1);
  }
}

TEST_P(given_up, a_watch) {
  if (slow) GTEST_SKIP() << "needs an unsanitized build: sanitizers have memory of their own";
  runtime rt(options());
  auto watched = rt.spawn<sink>();
  auto kept = watched.watch();
  const auto give_up = [&rt, &watched] {
    for (int round = 0; round < 100; ++round) {
      for (int i = 0; i < 1'000; ++i) auto nobody_waits = watched.watch();
      rt.run();
    }
    return resident_bytes();
  };
  const std::size_t before = give_up();
  EXPECT_LE(give_up(), before + 3'000'000) << "80 bytes each are 8 MB";
  watched.stop();
  rt.run();
  EXPECT_EQ(kept.get().reason, ended::why::stopped) << "who watched all the time is told";
}

TROUPE_TEST_EACH(given_up, each_policy);

}  // namespace
}  // namespace troupe::test
