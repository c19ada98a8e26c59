// A thread waits for a lazy that another thread runs. It helps where that cannot bury a wait under
// other work.
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

class helping : public conformance {};

// Calls the function from the main thread, from an outside thread, and from a posted procedure,
// which needs a worker beside the one for which it waits.
template <class Function>
void from_each_thread(runtime& rt, unsigned workers, const Function& function) {
  function();
  std::async(std::launch::async, [&] { function(); }).get();
  if (workers > 1) rt.post([&] { function(); });
  rt.run();
}
// Runs the lazy on the pool, since an outside thread has no queue.
template <class T>
std::future<T> begin_on_pool(runtime& rt, const lazy<T>& wanted) {
  auto value = std::make_shared<std::promise<T>>();
  rt.post([value, wanted] { value->set_value(wanted.get()); });
  return value->get_future();
}

// The lazy that another thread runs makes further lazies, which can end only if the waiting thread
// takes part.
TEST_P(helping, a_waiter_runs_what_the_awaited_lazy_has_queued) {
  if (!threaded()) GTEST_SKIP() << "needs threads";
  runtime rt(options());
  std::atomic<bool> ends{false};
  // All workers but one are held.
  std::atomic<int> stuck{0};
  auto hold = [&] {
    ++stuck;
    stuck.notify_all();
    wait_for(ends, true);
  };
  for (unsigned i = 1; i < workers(); ++i) rt.post(hold);
  for (int seen = stuck.load(); seen != static_cast<int>(workers()) - 1; seen = stuck.load())
    stuck.wait(seen);
  for (int round = 0; round < fewer(50, 5); ++round) {
    std::atomic<bool> begun{false}, helped{false};
    const lazy awaited([&] {
      set_and_wake(begun, true);
      const lazy second([&] { set_and_wake(helped, true); });
      const lazy first([] { return 1; });
      first.get();  // submits both lazies
      wait_for(helped, true);
      second.get();
      return 7;
    });
    auto other = begin_on_pool(rt, awaited);
    wait_for(begun, true);
    EXPECT_EQ(awaited.get(), 7);
    EXPECT_EQ(other.get(), 7);
  }
  set_and_wake(ends, true);
  rt.run();
}

// A thread waits for `third`. In its queue lies `second`, which needs `first`, and `first` lies on
// the thread's own stack. So the thread must not run `second`.
TEST_P(helping, no_task_is_buried_by_what_its_thread_has_queued) {
  if (!threaded()) GTEST_SKIP() << "needs threads";
  runtime rt(options());
  from_each_thread(rt, workers(), [&rt] {
    std::atomic<bool> begun{false}, waits{false};
    std::optional<lazy<int>> first;
    const lazy third([&] {
      set_and_wake(begun, true);
      wait_for(waits, true);
      // sleeps: until the waiting thread is asleep
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return 3;
    });
    auto other = begin_on_pool(rt, third);
    wait_for(begun, true);
    first.emplace([&] {
      set_and_wake(waits, true);
      return third.get() + 1;
    });
    const lazy second([&] { return first->get() + 1; });
    EXPECT_EQ(first->get(), 4);
    EXPECT_EQ(second.get(), 5);
    EXPECT_EQ(other.get(), 3);
  });
}

// A lazy that the awaited one has queued may need the waiting one, though the awaited one needs
// neither.
TEST_P(helping, no_task_is_buried_by_what_the_awaited_one_has_queued) {
  if (!threaded()) GTEST_SKIP() << "needs threads";
  runtime rt(options());
  from_each_thread(rt, workers(), [&rt] {
    std::atomic<bool> begun{false}, waits{false};
    std::optional<lazy<int>> waiting, left;
    const lazy awaited([&] {
      set_and_wake(begun, true);
      wait_for(waits, true);
      left.emplace([&] { return waiting->get() + 1; });
      const lazy other([] { return 1; });
      other.get();  // submits both lazies
      // sleeps: a thread may take `left` now
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return 3;
    });
    waiting.emplace([&] {
      set_and_wake(waits, true);
      return awaited.get() + 1;
    });
    auto runs = begin_on_pool(rt, awaited);
    wait_for(begun, true);
    EXPECT_EQ(waiting->get(), 4);
    EXPECT_EQ(runs.get(), 3);
    EXPECT_EQ(left->get(), 5);
  });
}

}  // namespace

TROUPE_TEST_EACH(helping, threaded_settings);

}  // namespace troupe::test
