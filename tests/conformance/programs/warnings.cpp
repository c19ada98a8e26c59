// What an observed runtime warns of, while its program runs: by callback, in lines on standard
// error, and on its socket.
#include <sys/resource.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
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
  bool is_simulated() { return options().policy == policy::simulated; }
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
  if (is_simulated()) return;  // whose time is virtual
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
  if (is_simulated()) return;  // no thread may block for what run() does
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
  if (is_simulated()) return;  // which has no such pool
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
