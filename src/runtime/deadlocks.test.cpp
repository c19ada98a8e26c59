// The search for deadlocks with something happening in the middle of it: threads that are blocked, and a wait that ends just before
// it is refused. What tells the search of threads is replaced, and so called between its looks.
#include "actor/deadlocks.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "actor/running.hpp"
#include "actor/system.hpp"
#include "troupe/troupe.hpp"

namespace troupe::test {
namespace {

struct first_actor {
  unchecked<actor::system*> home() { return {&actor::system::of(*actor::current_cell())}; }
  task<int> await_lazy(lazy<int> of, event then) {
    const int value = co_await of;
    co_await then.wait();
    co_return value;
  }
  int ping() { return 1; }
};
struct second_actor {
  task<int> asks(ref<first_actor> whom) { co_return co_await whom.ask<&first_actor::ping>(); }
  int ping() { return 2; }
};

// What the test does between two looks of a search that its own thread makes: other threads' searches see no thread at all.
class between_looks {
 public:
  explicit between_looks(actor::system& of) : of_(of), real_(of.deadlocks.jobs) {
    current_ = this;
    of_.deadlocks.jobs = &replaced_;
  }
  ~between_looks() { of_.deadlocks.jobs = real_; }

  const void* loops = nullptr;  // this thread waits for itself, as the first look sees it: so a second one comes
  std::function<void()> in_first, in_second;
  unsigned looks = 0;

 private:
  static bool is_own() { return std::this_thread::get_id() == current_->thread_; }
  static const void* runner_of(const void* job) noexcept { return is_own() ? current_->real_->runner_of(job) : nullptr; }
  static void for_each(void* context, void (*look)(void*, const void*, const void*, std::uint32_t&)) {
    if (!is_own()) return;
    const bool first = ++current_->looks == 1;
    const auto& act = first ? current_->in_first : current_->in_second;
    std::uint32_t seen_in = 0;
    if (first && current_->loops != nullptr) look(context, current_->loops, current_->loops, seen_in);
    if (act) act();
    current_->real_->for_each(context, look);
  }

  actor::system& of_;
  const actor::job_waits* const real_;
  const std::thread::id thread_ = std::this_thread::get_id();
  static inline between_looks* current_ = nullptr;
  static inline const actor::job_waits replaced_{&runner_of, &for_each};
};

struct blocked_thread {
  const void* thread = nullptr;
  const tasks::shared_state* waits_for = nullptr;
};
// The only one that runs jobs and is blocked.
blocked_thread find_blocked() {
  blocked_thread found;
  static_cast<void>(tasks::for_each_blocked(&found, [](void* to, const tasks::blocked_thread& one) {
    if (one.job_thread == nullptr) return;
    *static_cast<blocked_thread*>(to) = {one.job_thread, &one.waits_for};
  }));
  return found;
}
void wait_until(const std::function<bool()>& holds) {
  while (!holds()) std::this_thread::yield();
}
void wait_for_suspended(runtime& rt, unsigned count) {
  wait_until([&] { return rt.dump().find("suspended: " + std::to_string(count) + "\n") != std::string::npos; });
}

TEST(deadlock_search, takes_a_blocked_thread_only_for_what_it_waited_for_at_both_looks) {
  runtime rt({.workers = 2});
  auto first = rt.spawn<first_actor>();
  auto second = rt.spawn<second_actor>();  // it would be told
  actor::system& home = *first.ask<&first_actor::home>().get().value;
  promise<int> given;
  auto later = given.get_future();
  event then;
  lazy<int> one([&] { return later.get(); });
  lazy<int> two([&] { return second.ask<&second_actor::ping>().get(); });
  std::thread runs([&] {
    EXPECT_EQ(one.get(), 1);
    EXPECT_EQ(two.get(), 2);
  });
  wait_until([] { return find_blocked().thread != nullptr; });
  auto answer = first.ask<&first_actor::await_lazy>(one, then);
  wait_for_suspended(rt, 1);
  auto asked = second.ask<&second_actor::asks>(first);
  wait_for_suspended(rt, 2);
  {
    between_looks here(home);
    const blocked_thread before = find_blocked();
    here.loops = before.thread;
    // The thread goes on, and is blocked again: for the second one, which waits for the first one, which waits for its event by now.
    here.in_second = [&] {
      given.set_value(1);
      wait_until([&] { return find_blocked().thread != nullptr && find_blocked().waits_for != before.waits_for; });
    };
    EXPECT_EQ(home.deadlocks.search(), 0u);
    EXPECT_EQ(here.looks, 2u);
  }
  then.set();
  EXPECT_EQ(answer.get(), 1);
  EXPECT_EQ(asked.get(), 1);
  runs.join();
}

TEST(deadlock_search, keeps_no_text_of_a_wait_that_was_over_when_it_was_to_be_refused) {
  runtime rt({.workers = 2});
  auto first = rt.spawn<first_actor>();
  auto second = rt.spawn<second_actor>();  // it is to be told
  actor::system& home = *first.ask<&first_actor::home>().get().value;
  between_looks here(home);
  promise<> go;
  auto gone = go.get_future();
  lazy<int> one([&] {
    gone.get();
    return second.ask<&second_actor::ping>().get();
  });
  std::thread runs([&] { EXPECT_THROW(one.get(), actor_stopped); });
  wait_until([] { return find_blocked().thread != nullptr; });
  event then;
  auto answer = first.ask<&first_actor::await_lazy>(one, then);
  wait_for_suspended(rt, 1);
  auto asked = second.ask<&second_actor::asks>(first);
  wait_for_suspended(rt, 2);
  const blocked_thread before = find_blocked();
  go.set_value();
  wait_until([&] { return find_blocked().thread != nullptr && find_blocked().waits_for != before.waits_for; });
  here.in_second = [&] {
    second.stop_now();
    wait_for_suspended(rt, 0);
    runs.join();
  };
  EXPECT_EQ(home.deadlocks.search(), 0u);
  EXPECT_EQ(here.looks, 2u) << "there was a circle";
  EXPECT_EQ(home.deadlocks.texts_kept(), 0u);
  EXPECT_THROW(asked.get(), actor_stopped);
  EXPECT_THROW(answer.get(), actor_stopped);
}

}  // namespace
}  // namespace troupe::test
