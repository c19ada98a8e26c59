// Two parts of the search for deadlocks that only counts or a certain order of events can show: how
// many asks an ask looks at before it waits, and what the search does about threads that are
// blocked and about a wait that ends just before the search refuses it. To control the order, the
// test replaces the function through which the search learns which threads are blocked. The search
// calls it between its two looks.
#include "actor/waits/deadlock_search.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "actor/system/actor_system.hpp"
#include "task/running/job_waits.hpp"
#include "task/running/running.hpp"
#include "troupe/actor/self.hpp"
#include "troupe/jobs/lazy.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/task/event.hpp"
#include "troupe/task/when.hpp"

namespace troupe::test {
namespace {

struct first_actor {
  unchecked<actor::actor_system*> home() {
    return {&actor::actor_system::of(*actor::current_cell())};
  }
  task<int> await_lazy(lazy<int> awaited, event wakes) {
    const int value = co_await awaited;
    co_await wakes.wait();
    co_return value;
  }
  int ping() { return 1; }
  // Keeps the turn busy while searches come and go. The wait for the ask's answer has begun before.
  static task<int> outlast_searches(unchecked<const actor::actor_system*> home) {
    const std::uint64_t before = home.value->deadlocks->rounds();
    while (home.value->deadlocks->rounds() < before + 2) std::this_thread::yield();
    co_return 1;
  }
  task<int> ask_itself(unchecked<const actor::actor_system*> home) {
    auto [answer, other] =
        co_await when_all(self(this).ask<&first_actor::ping>(), outlast_searches(home));
    co_return answer + other;
  }
  static task<int> none() { co_return 1; }
  task<int> ask_itself_side_by_side() {
    auto [answer, other] = co_await when_all(self(this).ask<&first_actor::ping>(), none());
    co_return answer + other;
  }
};
struct second_actor {
  task<int> asks(ref<first_actor> whom) { co_return co_await whom.ask<&first_actor::ping>(); }
  int ping() { return 2; }
};

// Takes the place of the layer of jobs: runs the test's functions between the two looks of a search
// that the test's own thread makes. The searches of other threads see no blocked thread.
class between_looks {
 public:
  explicit between_looks(actor::actor_system& system)
      : system_(system), real_(system.waits_for_jobs) {
    current_ = this;
    system_.waits_for_jobs = &replaced_;
  }
  ~between_looks() { system_.waits_for_jobs = real_; }

  // Searches until a search has made both looks. One that comes while a worker is still parking an
  // actor does not see that actor's turn, and ends after its first look.
  void search() {
    do {
      looks_ = 0;
      EXPECT_EQ(system_.deadlocks->search(), 0u);
    } while (looks_ < 2);
  }

  // In the first look this thread seems to wait for itself, so that the search makes a second look.
  const void* loops = nullptr;
  std::function<void()> in_second;

 private:
  static bool is_own() { return std::this_thread::get_id() == current_->thread_; }
  static const void* runner_of(const void* job) noexcept {
    return is_own() ? current_->real_->runner_of(job) : nullptr;
  }
  static void for_each(void* context,
                       void (*look)(void*, const void*, const void*, std::uint32_t&)) {
    if (!is_own()) return;
    const bool first = ++current_->looks_ == 1;
    std::uint32_t seen_in = 0;
    if (first && current_->loops != nullptr)
      look(context, current_->loops, current_->loops, seen_in);
    if (!first) current_->in_second();
    current_->real_->for_each(context, look);
  }

  actor::actor_system& system_;
  unsigned looks_ = 0;
  const tasks::job_waits* const real_;
  const std::thread::id thread_ = std::this_thread::get_id();
  static inline between_looks* current_ = nullptr;
  static inline const tasks::job_waits replaced_{&runner_of, &for_each};
};

struct blocked_thread {
  const void* thread = nullptr;
  const tasks::shared_state* waits_for = nullptr;
};
// The only blocked thread that runs jobs.
blocked_thread find_blocked() {
  blocked_thread found;
  static_cast<void>(
      tasks::for_each_blocked(&found, [](void* to, const tasks::blocked_thread& blocked) {
        if (blocked.job_thread == nullptr) return;
        *static_cast<blocked_thread*>(to) = {blocked.job_thread, &blocked.waits_for};
      }));
  return found;
}
void wait_until(const std::function<bool()>& holds) {
  while (!holds()) std::this_thread::yield();
}
void wait_for_suspended(runtime& rt, unsigned count) {
  wait_until([&] {
    return rt.dump().find("suspended: " + std::to_string(count) + "\n") != std::string::npos;
  });
}

TEST(deadlock_search, takes_a_blocked_thread_only_for_what_it_waited_for_at_both_looks) {
  runtime rt({.workers = 2});
  auto first = rt.spawn<first_actor>();
  auto second = rt.spawn<second_actor>();  // the search would refuse its wait
  actor::actor_system& home = *first.ask<&first_actor::home>().get().value;
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
    // The thread continues and is blocked again. Now it waits for the second actor, which waits for
    // the first one, which by now waits for its event.
    here.in_second = [&] {
      given.set_value(1);
      wait_until([&] {
        return find_blocked().thread != nullptr && find_blocked().waits_for != before.waits_for;
      });
    };
    here.search();
  }
  then.set();
  EXPECT_EQ(answer.get(), 1);
  EXPECT_EQ(asked.get(), 1);
  runs.join();
}

TEST(deadlock_search, keeps_no_text_of_a_wait_that_was_over_when_it_was_to_be_refused) {
  runtime rt({.workers = 2});
  auto first = rt.spawn<first_actor>();
  auto second = rt.spawn<second_actor>();  // the search will refuse its wait
  actor::actor_system& home = *first.ask<&first_actor::home>().get().value;
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
  wait_until([&] {
    return find_blocked().thread != nullptr && find_blocked().waits_for != before.waits_for;
  });
  here.in_second = [&] {
    second.stop_now();
    wait_for_suspended(rt, 0);
    runs.join();
  };
  here.search();
  EXPECT_EQ(home.deadlocks->texts_kept(), 0u);
  EXPECT_THROW(asked.get(), actor_stopped);
  EXPECT_THROW(answer.get(), actor_stopped);
}

// Two actors that send to each other until they are told to end, so that their worker never runs
// dry.
struct restless {
  ref<restless> other{};
  void know(ref<restless> whom) { other = std::move(whom); }
  void go(unchecked<const std::atomic<bool>*> ends) {
    if (ends.value->load()) {
      other = {};
    } else {
      other.tell<&restless::go>(ends);
    }
  }
};
TEST(deadlock_search, finds_a_turn_that_was_in_flight_and_lingers_on_a_busy_worker) {
  runtime rt({.workers = 1});
  auto first = rt.spawn<first_actor>();
  auto one = rt.spawn<restless>(), two = rt.spawn<restless>();
  actor::actor_system& home = *first.ask<&first_actor::home>().get().value;
  one.tell<&restless::know>(two);
  two.tell<&restless::know>(one);
  std::atomic<bool> ends{false};
  one.tell<&restless::go>(unchecked<const std::atomic<bool>*>{&ends});
  auto asked = first.ask<&first_actor::ask_itself>(unchecked<const actor::actor_system*>{&home});
  EXPECT_TRUE(asked.wait_for(std::chrono::seconds(20))) << "it was not found";
  ends = true;
  EXPECT_THROW(asked.get(), deadlock);
  rt.run();
}

// A turn waits for what a thread computes, and the search that the turn asked for has been. The
// turn is told; then its actor answers.
struct turn_behind_a_thread {
  explicit turn_behind_a_thread(const lazy<int>& awaited) {
    then.set();
    home = first.ask<&first_actor::home>().get().value;
    answer.emplace(first.ask<&first_actor::await_lazy>(awaited, then));
    wait_for_suspended(rt, 1);
    const std::uint64_t before = home->deadlocks->rounds();
    wait_until([&] { return home->deadlocks->rounds() > before && !home->deadlocks->soon(); });
  }
  runtime rt{{.workers = 2}};
  ref<first_actor> first = rt.spawn<first_actor>();
  event then;
  actor::actor_system* home = nullptr;
  std::optional<future<int>> answer;
};

TEST(deadlock_search, is_asked_for_by_a_thread_that_begins_to_wait_for_an_answer) {
  std::atomic<turn_behind_a_thread*> waits{nullptr};
  std::atomic<bool> begun{false};
  const lazy<int> one([&] {
    begun = true;
    wait_until([&] { return waits.load() != nullptr; });
    return waits.load()->first.ask<&first_actor::ping>().get();
  });
  std::thread runs([&] { EXPECT_EQ(one.get(), 1); });
  wait_until([&] { return begun.load(); });
  turn_behind_a_thread here(one);
  waits = &here;
  runs.join();
  EXPECT_THROW(here.answer->get(), deadlock);
}

TEST(deadlock_search, is_asked_for_by_a_thread_that_begins_to_wait_for_a_job) {
  std::atomic<turn_behind_a_thread*> waits{nullptr};
  std::atomic<bool> begun{false}, goes_on{false};
  const lazy<int> one([&] {
    wait_until([&] { return waits.load() != nullptr; });
    return waits.load()->first.ask<&first_actor::ping>().get();
  });
  const lazy<int> two([&] {
    begun = true;
    wait_until([&] { return goes_on.load(); });
    return one.get();
  });
  std::thread runs_two([&] { EXPECT_EQ(two.get(), 1); });
  wait_until([&] { return begun.load(); });
  turn_behind_a_thread here(two);
  std::thread runs_one([&] { EXPECT_EQ(one.get(), 1); });
  waits = &here;
  // The search that the answer's wait asks for finds no cycle; the next one comes only later.
  wait_until([] { return find_blocked().thread != nullptr; });
  const std::uint64_t before = here.home->deadlocks->rounds();
  wait_until([&] { return here.home->deadlocks->rounds() > before + 1; });
  goes_on = true;
  runs_one.join();
  runs_two.join();
  EXPECT_THROW(here.answer->get(), deadlock);
}

TEST(deadlock_search, rests_when_it_has_told_one_and_nothing_waits_any_more) {
  runtime rt({.workers = 2});
  auto held = rt.hold();
  auto first = rt.spawn<first_actor>();
  actor::actor_system& home = *first.ask<&first_actor::home>().get().value;
  EXPECT_THROW(first.ask<&first_actor::ask_itself_side_by_side>().get(), deadlock);
  const std::uint64_t before = home.deadlocks->rounds();
  // Lets time pass in which no turn is suspended.
  for (int i = 0; i < 200; ++i) {
    promise<> given;
    future<> later = given.get_future();
    static_cast<void>(later.wait_for(std::chrono::milliseconds(1)));
  }
  EXPECT_LE(home.deadlocks->rounds() - before, 20u);
  held.release();
  rt.run();
}

// The search waits for a lock, as it may work for long.
TEST(deadlock_search, stops_no_timer) {
  runtime rt({.workers = 2});
  auto first = rt.spawn<first_actor>();
  actor::actor_system& home = *first.ask<&first_actor::home>().get().value;
  event then;
  auto answer = first.ask<&first_actor::await_lazy>(lazy<int>([] { return 1; }), then);
  wait_for_suspended(rt, 1);
  promise<> expired;
  future<> has_expired = expired.get_future();
  {
    const std::lock_guard looking(home.looking);
    const std::uint64_t before = home.deadlocks->rounds();
    home.deadlocks->search_soon();
    wait_until([&] { return home.deadlocks->rounds() > before; });
    const timer fires = rt.after(std::chrono::milliseconds(1), [&] { expired.set_value(); });
    EXPECT_TRUE(has_expired.wait_for(std::chrono::seconds(20)));
  }
  then.set();
  EXPECT_EQ(answer.get(), 1);
  rt.run();
}

// A chain of asks. The actor at its end asks an actor from before the chain.
struct link_actor {
  unchecked<actor::actor_system*> home() {
    return {&actor::actor_system::of(*actor::current_cell())};
  }
  task<int> go(int left, ref<first_actor> last) {
    if (left == 0) co_return co_await last.ask<&first_actor::ping>();
    co_return 1 + co_await spawn<link_actor>().ask<&link_actor::go>(left - 1, last);
  }
};
std::int64_t hops_in(const actor::actor_system& home) {
  std::int64_t sum = 0;
  tasks::for_each_count(
      home, [&](unsigned, const tasks::counts& counts) { sum += counts[tasks::counted::hops]; });
  return sum;
}

constexpr int links = 10'000;
constexpr std::int64_t hops_max = 8;  // docs/protocols/deadlocks.md

TEST(deadlock_search, an_ask_of_who_is_not_suspended_looks_at_no_other) {
  // Under this policy an actor is inactive as soon as it has nothing to do.
  runtime rt({.workers = 2, .policy = policy::shared_queue});
  auto head = rt.spawn<link_actor>();
  auto last = rt.spawn<first_actor>();
  actor::actor_system& home = *head.ask<&link_actor::home>().get().value;
  static_cast<void>(last.ask<&first_actor::ping>().get());
  EXPECT_EQ(head.ask<&link_actor::go>(links, last).get(), links + 1);
  rt.run();
  EXPECT_LE(hops_in(home), hops_max)
      << "the last one may still have been in the turn of its first ask";
}

TEST(deadlock_search, an_ask_of_who_is_suspended_looks_at_some_of_those_above) {
  runtime rt({.workers = 2});
  auto head = rt.spawn<link_actor>();
  auto last = rt.spawn<first_actor>();
  actor::actor_system& home = *head.ask<&link_actor::home>().get().value;
  event then;
  auto first = last.ask<&first_actor::await_lazy>(lazy<int>([] { return 0; }), then);
  wait_for_suspended(rt, 1);
  const std::int64_t before = hops_in(home);
  auto all = head.ask<&link_actor::go>(links, last);
  wait_for_suspended(rt, links + 2);
  // A new actor is not inactive yet on the worker that made it. So a call that asks it looks at the
  // asks above, too.
  EXPECT_GE(hops_in(home) - before, 1);
  EXPECT_LE(hops_in(home) - before, hops_max * (links + 1)) << "however many are above";
  then.set();
  EXPECT_EQ(all.get(), links + 1);
  EXPECT_EQ(first.get(), 0);
  rt.run();
}

}  // namespace
}  // namespace troupe::test
