// What an observed runtime warns of, while its program runs: by callback, in lines on standard
// error, and on its socket.
#include <sys/resource.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support/observed.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

// What was told so far. The observer's thread adds.
class told_warnings {
 public:
  void add(const warning& one) {
    std::lock_guard lock(mutex_);
    all_.push_back(one);
    added_.notify_all();
  }
  std::size_t count(warning_kind kind) {
    std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count(all_, kind, &warning::kind));
  }
  // Waits for the first one of that kind; none if it does not come.
  std::optional<warning> wait_for(warning_kind kind) {
    std::optional<warning> found;
    std::unique_lock lock(mutex_);
    const auto is_told = [&] {
      const auto at = std::ranges::find(all_, kind, &warning::kind);
      if (at != all_.end()) found = *at;
      return at != all_.end();
    };
    EXPECT_TRUE(added_.wait_for(lock, 30s, is_told)) << name_of(kind) << " was not told";
    return found;
  }

 private:
  std::mutex mutex_;
  std::condition_variable added_;
  std::vector<warning> all_;
};

class warnings : public observed_runtimes {
 protected:
  runtime_options warned() {
    runtime_options chosen = observed();
    chosen.on_warning = [this](const warning& one) { told.add(one); };
    chosen.warnings.handler = 0us;
    return chosen;
  }
  told_warnings told;
};

struct warned_slow {
  told_warnings* told;
  std::optional<warning>* seen;
  void work() { *seen = told->wait_for(warning_kind::long_handler); }
};
TEST_P(warnings, a_handler_that_takes_long_is_told_while_it_runs) {
  runtime_options chosen = warned();
  chosen.warnings.handler = 2ms;
  runtime rt(chosen);
  std::optional<warning> seen;
  auto slow = rt.spawn<warned_slow>(&told, &seen);
  slow.tell<&warned_slow::work>();
  rt.run();
  ASSERT_TRUE(seen);
  EXPECT_TRUE(seen->actor.ends_with("warned_slow")) << seen->actor;
  EXPECT_TRUE(seen->method.ends_with("::work")) << seen->method;
  EXPECT_EQ(seen->actor_id, slow.id());
  EXPECT_EQ(seen->times, 1u);
  EXPECT_LE(seen->since, seen->last);
  EXPECT_TRUE(seen->text.contains("is blocked there")) << seen->text;
  const json listed = asker().ask("warnings")["runtimes"][0];
  EXPECT_EQ(named(listed["warnings"], "handler", "::work")["actor"], slow.id());
  EXPECT_GE(listed["warning_counts"]["long_handler"], 1);
  const json summary = asker().ask("summary")["runtimes"][0];
  EXPECT_EQ(named(summary["warnings"], "handler", "::work")["kind"], "long_handler");
}

struct warned_of_never {
  static constexpr bool may_block = true;
  void work() { std::this_thread::sleep_for(20ms); }  // sleeps: a handler that blocks
};
struct warned_often {
  void work() { std::this_thread::sleep_for(20ms); }  // sleeps: a handler that blocks
};
TEST_P(warnings, handlers_of_a_class_that_may_block_are_not_told) {
  runtime_options chosen = warned();
  chosen.warnings.handler = 2ms;
  chosen.warnings.again = 0s;
  runtime rt(chosen);
  const auto never = rt.spawn<warned_of_never>();
  const auto often = rt.spawn<warned_often>();
  for (int i = 0; i < 20; ++i) {
    never.tell<&warned_of_never::work>();
    often.tell<&warned_often::work>();
  }
  rt.run();
  const json listed = asker().ask("warnings")["runtimes"][0];
  EXPECT_TRUE(named(listed["warnings"], "handler", "warned_often::work").is_object());
  for (const json& one : listed["warnings"])
    EXPECT_FALSE(one["handler"].get<std::string>().contains("warned_of_never")) << one;
}

TEST_P(warnings, a_posted_procedure_that_takes_long_is_told) {
  runtime_options chosen = warned();
  chosen.warnings.handler = 2ms;
  runtime rt(chosen);
  std::optional<warning> seen;
  rt.post([&] { seen = told.wait_for(warning_kind::long_handler); });
  rt.run();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->method, "a posted procedure");
  EXPECT_EQ(seen->actor, "");
}

struct warned_waiter {
  future<> until;
  task<int> wait() {
    co_await std::move(until);
    co_return 1;
  }
  void put(int) {}
};
TEST_P(warnings, a_mailbox_that_grows_is_told) {
  runtime_options chosen = warned();
  chosen.warnings.mailbox = 50ms;
  chosen.warnings.mailbox_messages = 10;
  runtime rt(chosen);
  promise<> end;
  auto full = rt.spawn<warned_waiter>(end.get_future());
  full.tell<&warned_waiter::wait>();
  rt.spawn([&]() -> task<> {
    // real time, not that of the simulation
    auto next = std::chrono::steady_clock::now();
    const auto until = next + 30s;
    while (told.count(warning_kind::growing_mailbox) == 0 && next < until) {
      co_await sleep_for(1ms);
      if (std::chrono::steady_clock::now() < next) continue;
      full.tell<&warned_waiter::put>(1);
      next = std::chrono::steady_clock::now() + 1ms;
    }
    end.set_value();
  });
  rt.run();
  const auto seen = told.wait_for(warning_kind::growing_mailbox);
  ASSERT_TRUE(seen);
  EXPECT_TRUE(seen->actor.ends_with("warned_waiter")) << seen->actor;
  EXPECT_EQ(seen->actor_id, full.id());
  EXPECT_EQ(seen->times, 1u);
  EXPECT_TRUE(seen->text.contains("is suspended")) << seen->text;
}

struct warned_asker {
  ref<warned_waiter> asked;
  task<> ask_it() { co_await asked.ask<&warned_waiter::wait>(); }
};
TEST_P(warnings, an_ask_that_is_not_answered_is_told) {
  if (simulated()) return;  // whose time is virtual
  promise<> end;
  std::optional<hold> keeps;  // the program is not out of work before it is warned
  runtime_options chosen = warned();
  chosen.warnings.ask = 60ms;
  chosen.on_warning = [&](const warning& one) {
    const bool ends = one.kind == warning_kind::unanswered_ask && told.count(one.kind) == 0;
    told.add(one);
    if (!ends) return;
    end.set_value();
    keeps.reset();
  };
  runtime rt(chosen);
  keeps = rt.hold();
  auto late = rt.spawn<warned_waiter>(end.get_future());
  auto asks = rt.spawn<warned_asker>(late);
  asks.tell<&warned_asker::ask_it>();
  rt.run();
  const auto seen = told.wait_for(warning_kind::unanswered_ask);
  ASSERT_TRUE(seen);
  EXPECT_TRUE(seen->actor.ends_with("warned_asker")) << seen->actor;
  EXPECT_TRUE(seen->method.ends_with("::ask_it")) << seen->method;
  EXPECT_EQ(seen->actor_id, asks.id());
  EXPECT_TRUE(seen->text.contains("warnings.cpp:")) << seen->text;
  EXPECT_TRUE(seen->text.contains("::wait (#" + std::to_string(late.id()) + ")")) << seen->text;
}

TEST_P(warnings, an_ask_for_which_a_thread_is_blocked_is_told) {
  if (!threaded()) return;  // no thread may block for what run() does
  promise<> end;
  runtime_options chosen = warned();
  chosen.warnings.ask = 60ms;
  chosen.on_warning = [&](const warning& one) {
    const bool ends = one.kind == warning_kind::unanswered_ask && told.count(one.kind) == 0;
    told.add(one);
    if (ends) end.set_value();
  };
  runtime rt(chosen);
  auto late = rt.spawn<warned_waiter>(end.get_future());
  EXPECT_EQ(late.ask<&warned_waiter::wait>().get(), 1);
  rt.run();
  const auto seen = told.wait_for(warning_kind::unanswered_ask);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->method, "a blocked thread");
  EXPECT_TRUE(seen->text.contains("::wait")) << seen->text;
}

TEST_P(warnings, a_full_blocking_pool_is_told) {
  if (simulated()) return;  // which has no such pool
  runtime_options chosen = warned();
  chosen.blocking_threads = 1;
  chosen.warnings.ask = 40ms;  // so that it looks often
  runtime rt(chosen);
  std::optional<warning> seen;
  for (int i = 0; i < 3; ++i) {
    rt.spawn([&]() -> task<> {
      co_await blocking([&] { seen = told.wait_for(warning_kind::blocking_pool_full); });
    });
  }
  rt.run();
  ASSERT_TRUE(seen);
  EXPECT_TRUE(seen->text.contains("and 2 calls wait")) << seen->text;
}

TEST_P(warnings, a_lack_of_descriptors_is_told) {
  ::rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  ::rlimit low = before;
  low.rlim_cur = 200;  // of which more than 1 % are in use
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  {
    runtime_options chosen = warned();
    chosen.warnings.descriptors_percent = 1;
    chosen.warnings.ask = 40ms;  // so that it looks often
    runtime rt(chosen);
    const auto seen = told.wait_for(warning_kind::descriptors_run_out);
    ASSERT_TRUE(seen);
    EXPECT_TRUE(seen->text.contains("of 200 descriptors")) << seen->text;
  }
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

// A turn that waits for a promise that no one keeps.
void stall_once(runtime& rt) {
  promise<> never;
  auto waits = rt.spawn<warned_waiter>(never.get_future());
  waits.tell<&warned_waiter::wait>();
  EXPECT_THROW(rt.run(), stalled);
  never.set_value();
  rt.run();
}

TEST_P(warnings, a_stall_is_told_before_the_runtime_ends) {
  {
    runtime_options chosen = warned();
    runtime rt(chosen);
    stall_once(rt);
  }
  ASSERT_EQ(told.count(warning_kind::stall), 1u);
  const auto seen = told.wait_for(warning_kind::stall);
  EXPECT_TRUE(seen->text.contains("while 1 turn was suspended")) << seen->text;
  EXPECT_TRUE(seen->text.contains("warned_waiter")) << seen->text;
}

TEST_P(warnings, a_warning_is_told_again_only_after_a_time) {
  for (const bool again : {false, true}) {
    told_warnings those;
    {
      runtime_options chosen = observed();
      chosen.on_warning = [&](const warning& one) { those.add(one); };
      chosen.warnings.handler = 0us;
      if (again) chosen.warnings.again = 0ms;
      runtime rt(chosen);
      stall_once(rt);
      static_cast<void>(those.wait_for(warning_kind::stall));
      stall_once(rt);
      asker here;
      const auto until = std::chrono::steady_clock::now() + 30s;
      json seen;
      do {
        seen = here.ask("warnings")["runtimes"][0];
      } while (seen["warning_counts"]["stall"] != 2 && std::chrono::steady_clock::now() < until);
      EXPECT_EQ(named(seen["warnings"], "kind", "stall")["times"], 2);
    }
    EXPECT_EQ(those.count(warning_kind::stall), again ? 2u : 1u);
  }
}

TEST_P(warnings, lines_are_written_where_no_callback_is_given) {
  for (const unsigned lines : {0u, 1u}) {
    testing::internal::CaptureStderr();
    {
      runtime_options chosen = observed();
      chosen.warnings.handler = 0us;
      chosen.warning_lines = lines;
      runtime rt(chosen);
      stall_once(rt);
    }
    const std::string seen = testing::internal::GetCapturedStderr();
    EXPECT_EQ(seen.starts_with("troupe: warning: run() was out of work"), lines != 0) << seen;
    EXPECT_EQ(std::ranges::count(seen, '\n'), lines) << seen;
  }
}

TEST_P(warnings, a_runtime_that_is_not_observed_warns_of_nothing) {
  runtime_options chosen = warned();
  chosen.observe = false;
  {
    runtime rt(chosen);
    stall_once(rt);
  }
  EXPECT_EQ(told.count(warning_kind::stall), 0u);
}

// ---- one program for each kind of trouble ----

// Waits until the warning has come: the program makes trouble for as long.
struct trouble_maker {
  runtime& rt;
  told_warnings& told;
  warning_kind kind;
  std::vector<timer> rounds{};
  std::vector<std::function<void()>> ends{};
  template <class Round>
  void every_ms(Round round) {
    rounds.push_back(rt.every(1ms, std::move(round)));
  }
};

struct warned_failing {
  void work() { throw std::runtime_error("it fails"); }
};
void fail_often(trouble_maker& by) {
  const auto failing = by.rt.spawn<warned_failing>();
  by.every_ms([=] { failing.tell<&warned_failing::work>(); });
}

struct warned_gone {
  void work() {}
};
void send_to_ended(trouble_maker& by) {
  const auto gone = by.rt.spawn<warned_gone>();
  gone.stop();
  by.every_ms([=] { gone.tell<&warned_gone::work>(); });
}

void spawn_ever_more(trouble_maker& by) {
  const auto kept = std::make_shared<std::vector<ref<warned_gone>>>();
  by.every_ms([kept, &rt = by.rt] { kept->push_back(rt.spawn<warned_gone>()); });
}

struct warned_web {
  static constexpr bool reentrant = true;
  std::vector<promise<>> kept{};
  task<> wait() {
    kept.emplace_back();
    future<> never = kept.back().get_future();
    co_await std::move(never);
  }
};
void suspend_ever_more(trouble_maker& by) {
  const auto web = by.rt.spawn<warned_web>();
  by.every_ms([=] { web.tell<&warned_web::wait>(); });
  // The place of a call is not seen while its actor is in a turn; this actor is in none.
  const auto quiet = by.rt.spawn<warned_web>();
  quiet.tell<&warned_web::wait>();
  by.ends.push_back([quiet] {});
}

struct warned_first;
struct warned_second {
  static constexpr bool reentrant = true;
  ref<warned_first> other;
  task<> ask_other();
};
struct warned_first {
  static constexpr bool reentrant = true;
  ref<warned_second> other;
  void meet(ref<warned_second> one) { other = std::move(one); }
  task<> ask_other() {
    co_await sleep_for(1ms);
    co_await other.ask<&warned_second::ask_other>();
  }
};
task<> warned_second::ask_other() { co_await other.ask<&warned_first::ask_other>(); }
void ask_in_a_cycle(trouble_maker& by) {
  const auto first = by.rt.spawn<warned_first>();
  first.tell<&warned_first::meet>(by.rt.spawn<warned_second>(first));
  first.tell<&warned_first::ask_other>();
}

task<> hold_lock(std::shared_ptr<mutex> lock) {
  const auto held = co_await lock->lock();
  co_await sleep_for(1h);
}
task<> want_lock(std::shared_ptr<mutex> lock) { const auto held = co_await lock->lock(); }
void hold_a_lock(trouble_maker& by) {
  const auto lock = std::make_shared<mutex>();
  by.rt.spawn(hold_lock(lock));
  by.rounds.push_back(by.rt.after(5ms, [lock, &rt = by.rt] { rt.spawn(want_lock(lock)); }));
}

task<> keep_one(pool<int> of) {
  const auto kept = co_await of.borrow();
  co_await sleep_for(1h);
}
void exhaust_a_pool(trouble_maker& by) {
  const pool<int> numbers({.max = 1}, [] { return 1; });
  for (int i = 0; i < 2; ++i) by.rt.spawn(keep_one(numbers));
  by.ends.push_back([shown = std::make_shared<shown_numbers>("warned", numbers)] {});
}

// Reads only when its writer has waited for long.
task<> write_to_slow_reader(tcp_listener& listener) {
  auto connects = tcp_stream::connect(listener.local());
  tcp_stream writer = co_await std::move(connects);
  tcp_stream reader = co_await listener.accept();
  const auto writes = [&]() -> task<> {
    const std::string large(std::size_t{16} << 20, 'x');
    co_await writer.write_all(large);
    writer.close();
  };
  const auto reads = [&]() -> task<> {
    co_await sleep_for(100ms);
    std::vector<char> buffer(std::size_t{1} << 20);
    while (co_await reader.read(buffer) != 0) {
    }
  };
  co_await when_all(writes(), reads());
}
task<> write_again_and_again() {
  tcp_listener listener = tcp_listener::listen(endpoint::loopback(0));
  for (;;) co_await write_to_slow_reader(listener);
}
void write_slowly(trouble_maker& by) { by.rt.spawn(write_again_and_again()); }

struct warned_echo {
  static constexpr bool may_block = true;
  ref<warned_echo> other;
  void meet(ref<warned_echo> one) { other = std::move(one); }
  void echo() {
    if (other) other.tell<&warned_echo::echo>();
  }
};
void echo_without_end(trouble_maker& by) {
  const auto one = by.rt.spawn<warned_echo>();
  const auto other = by.rt.spawn<warned_echo>(one);
  one.tell<&warned_echo::meet>(other);
  one.tell<&warned_echo::echo>();
  by.ends.push_back([=] { one.tell<&warned_echo::meet>(ref<warned_echo>()); });
}

struct trouble_case {
  warning_kind kind;
  void (*make)(trouble_maker&);
  std::string_view subject, text;  // parts of them
};
constexpr trouble_case trouble_cases[] = {
    {warning_kind::failing_handler, fail_often, "warned_failing", "has thrown"},
    {warning_kind::dead_letters, send_to_ended, "messages", "to actors that have ended"},
    {warning_kind::growing_class, spawn_ever_more, "warned_gone", "are alive"},
    {warning_kind::growing_suspended, suspend_ever_more, "warned_web", "warnings.cpp:"},
    {warning_kind::wait_cycle, ask_in_a_cycle, "warned_second", "warnings.cpp:"},
    {warning_kind::long_lock, hold_a_lock, "held by", "1 call waiting"},
    {warning_kind::pool_exhausted, exhaust_a_pool, "the pool warned", "1 caller waits"},
    {warning_kind::long_io, write_slowly, "write", "took more than"},
    {warning_kind::livelock, echo_without_end, "warned_echo", "messages per second"}};

TEST_P(warnings, each_trouble_is_told_with_its_subject_and_with_advice) {
  if (simulated()) return;  // whose time is virtual
  for (const trouble_case& one : trouble_cases) {
    SCOPED_TRACE(name_of(one.kind));
    told_warnings those;
    runtime_options chosen = observed();
    chosen.on_error = [](const failure&) {};
    chosen.warnings.handler = 0us;
    chosen.warnings.growth = chosen.warnings.ask = chosen.warnings.lock = chosen.warnings.io = 60ms;
    chosen.warnings.growth_least = 10;
    json listed;
    runtime* running = nullptr;
    std::function<void()> end;
    chosen.on_warning = [&](const warning& seen) {
      const bool is_first = seen.kind == one.kind && those.count(one.kind) == 0;
      those.add(seen);
      if (is_first) end();
    };
    runtime rt(chosen);
    running = &rt;
    trouble_maker by{rt, those, one.kind};
    end = [&] {
      for (const auto& each : by.ends) each();
      running->stop();
    };
    one.make(by);
    const auto late = rt.after(30s, [&] { running->stop(); });
    try {
      rt.run();
    } catch (const std::runtime_error&) {
      // the failing handler's
    }
    const auto seen = those.wait_for(one.kind);
    ASSERT_TRUE(seen);
    EXPECT_TRUE(seen->subject.contains(one.subject)) << seen->subject;
    EXPECT_TRUE(seen->text.contains(seen->subject)) << seen->text;
    EXPECT_TRUE(seen->text.contains(one.text)) << seen->text;
    EXPECT_TRUE(seen->text.ends_with('.')) << seen->text;
    EXPECT_TRUE(seen->advice.ends_with('.')) << seen->advice;
    EXPECT_GE(seen->longest, 0ns);
    const json all = asker().ask("warnings")["runtimes"][0]["warnings"];
    const json listed_one = named(all, "kind", std::string(name_of(one.kind)));
    EXPECT_EQ(listed_one["active"], true) << all;
    // A later look may have counted more messages.
    EXPECT_TRUE(listed_one["subject"].get<std::string>().contains(one.subject)) << listed_one;
    EXPECT_EQ(listed_one["advice"], seen->advice);
  }
}

TEST_P(warnings, limits_that_make_no_sense_are_refused) {
  runtime_options chosen = warned();
  chosen.warnings.descriptors_percent = 101;
  EXPECT_THROW(runtime{chosen}, option_error);
  chosen = warned();
  chosen.warnings.ask = -1ms;
  EXPECT_THROW(runtime{chosen}, option_error);
}

TROUPE_TEST_EACH(warnings, all_settings);

}  // namespace
}  // namespace troupe::test
