// What a search sees as a failure, and the files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <set>
#include <string>

#include "explore/planted.hpp"
#include "sched/exploring/schedule_file.hpp"
#include "sched/exploring/story_event.hpp"
#include "support/conformance.hpp"
#include "troupe/troupe.hpp"

namespace {

using namespace std::chrono_literals;

struct Counter {
  int value = 0;
  void add() { ++value; }
  void again() { troupe::self(this).tell<&Counter::again>(); }
  void twice() {
    for (int i = 0; i < 2; ++i) troupe::self(this).tell<&Counter::twice>();
  }
};

struct Account {
  int balance = 0;
  void change(int by) { balance += by; }
  // is below zero while it waits
  troupe::task<> swap(int by) {
    balance -= by;
    co_await troupe::sleep_for(1ms);
    balance += by;
  }
};
struct Open_account : Account {
  static constexpr bool reentrant = true;
};

void count_to(troupe::runtime& rt, int last) {
  auto counter = rt.spawn<Counter>();
  for (int i = 0; i < last; ++i) counter.tell<&Counter::add>();
}

struct wrong {
  const char* name;
  std::function<void(troupe::explored_run&)> body;
  const char* says;
  bool dead_letters = false;
  std::uint64_t turns = 0;
};
void PrintTo(const wrong& of, std::ostream* to) { *to << of.name; }

class failures : public testing::TestWithParam<wrong> {};

TEST_P(failures, are_seen_in_the_first_schedule) {
  const troupe::explore_report report = troupe::explore(
      GetParam().body, {.turns = GetParam().turns, .dead_letters = GetParam().dead_letters});
  EXPECT_NE(report.failure.find(GetParam().says), std::string::npos) << report;
  EXPECT_EQ(report.schedules, 1u);
  EXPECT_EQ(report.holds, 0u);
}

const wrong all[] = {
    {"of_a_handler",
     [](auto&) {
       troupe::runtime rt;
       rt.post([] { throw std::runtime_error("no bread"); });
       rt.run();
     },
     "no bread"},
    {"an_exception_that_is_none", [](auto&) { throw 7; }, "no std::exception"},
    {"expectations_that_were_caught",
     [](auto&) {
       try {
         troupe::expect(false);
       } catch (const troupe::error&) {
       }
     },
     "properties.cpp"},
    {"at_quiescence",
     [](auto& run) {
       int ended = 0;
       run.at_quiescence([&] { troupe::expect(++ended < 2); });
       troupe::runtime rt;
       rt.run();
       rt.run();
     },
     "expect"},
    {"eventually_before_the_end",
     [](auto& run) {
       run.eventually([] { return false; }, 1h);
       troupe::runtime rt;
       count_to(rt, 3);
       rt.run();
     },
     "ended before"},
    {"eventually_in_time",
     [](auto& run) {
       run.eventually([] { return false; }, 1s);
       troupe::runtime rt;
       rt.spawn([]() -> troupe::task<> { co_await troupe::sleep_for(2s); });
       rt.run();
     },
     "in time"},
    {"an_invariant",
     [](auto& run) {
       troupe::runtime rt;
       auto account = rt.spawn<Account>();
       run.invariant(account, [](const Account& self) { return self.balance >= 0; });
       account.template tell<&Account::change>(-1);
       account.template tell<&Account::change>(1);
       rt.run();
     },
     "the condition of Account is false after a turn, at "},
    {"an_invariant_while_a_reentrant_actor_waits",
     [](auto& run) {
       troupe::runtime rt;
       auto account = rt.spawn<Open_account>();
       run.invariant(account, [](const Open_account& self) { return self.balance >= 0; });
       account.template tell<&Account::swap>(1);
       rt.run();
     },
     "the condition of Open_account"},
    {"an_invariant_of_no_actor",
     [](auto& run) { run.invariant(troupe::ref<Account>(), [](const Account&) { return true; }); },
     "refers to no actor"},
    {"an_invariant_through_a_base_class",
     [](auto& run) {
       troupe::runtime rt;
       const troupe::ref<Account> account = rt.spawn<Open_account>();
       run.invariant(account, [](const Account&) { return true; });
     },
     "derives from the ref's class"},
    {"waits_without_end",
     [](auto&) {
       troupe::runtime rt;
       rt.spawn([]() -> troupe::task<> {
         troupe::event never;
         co_await never.wait();
       });
       rt.run();
     },
     "suspended"},
    {"livelocks",
     [](auto&) {
       troupe::runtime rt;
       rt.spawn<Counter>().template tell<&Counter::again>();
       rt.run();
     },
     "the same again and again\n  its last turns ran Counter::again ("},
    {"livelocks_of_waits",
     [](auto&) {
       troupe::runtime rt;
       rt.spawn([]() -> troupe::task<> {
         for (;;) co_await troupe::sleep_for(1s);
       });
       rt.run();
     },
     "the same again and again"},
    {"a_program_that_grows",
     [](auto&) {
       troupe::runtime rt;
       rt.spawn<Counter>().template tell<&Counter::twice>();
       rt.run();
     },
     "it grows, or it is long", false, 20'000},
    {"dead_letters",
     [](auto&) {
       troupe::runtime rt;
       auto counter = rt.spawn<Counter>();
       counter.stop();
       counter.template tell<&Counter::add>();
       rt.run();
     },
     "dead letter", true},
};
INSTANTIATE_TEST_SUITE_P(each, failures, testing::ValuesIn(all),
                         [](const auto& of) { return std::string(of.param.name); });

TEST(searches, find_nothing_in_a_program_that_is_right) {
  int executions = 0;
  const troupe::explore_report report = troupe::explore(
      [&](auto& run) {
        ++executions;
        int seen = 0;
        troupe::runtime rt;
        auto counter = rt.spawn<Counter>();
        for (int i = 0; i < 3; ++i) counter.template tell<&Counter::add>();
        counter.tell([&seen](Counter& self) { seen = self.value; });
        run.eventually([&] { return seen == 3; }, 1s);
        rt.run();
        troupe::expect(rt.now() > 0s && rt.now() < 1s);
      },
      {.schedules = 60});
  EXPECT_TRUE(report) << report;
  EXPECT_EQ(report.schedules, 60u);
  EXPECT_EQ(executions, 60);
}

// An invariant sees no actor before its constructor, within a handler that waits, and after its
// end.
TEST(searches, check_an_invariant_between_the_handlers_of_a_living_actor) {
  int checks = 0;
  const troupe::explore_report report = troupe::explore(
      [&checks](auto& run) {
        const auto holds = [&checks](const Account& self) {
          ++checks;
          return self.balance >= 0;
        };
        for (int runtimes = 0; runtimes < 2; ++runtimes) {
          troupe::runtime rt;
          auto spawned = rt.spawn<Account>();
          auto adopted = rt.activate(std::make_unique<Account>());
          run.invariant(spawned, holds);
          run.invariant(adopted, holds);
          spawned.template tell<&Account::swap>(1);
          adopted.template tell<&Account::change>(1);
          rt.run();
          spawned.tell([](Account& self) { self.balance = 0; });
          spawned.stop();
          rt.run();
          count_to(rt, 2);
          rt.run();
        }
      },
      {.schedules = 60});
  EXPECT_TRUE(report) << report;
  EXPECT_EQ(report.schedules, 60u);
  EXPECT_GT(checks, 60 * 2);
}

struct Desk {
  void open() {}
  void ask() { troupe::self(this).tell<&Desk::answer>(); }
  void answer() {}
};
struct Visitor {
  troupe::ref<Desk> desk;
  void open() { desk.tell<&Desk::open>(); }
  void ask() { desk.tell<&Desk::ask>(); }
};

TEST(searches, count_the_pairs_of_handlers_that_ran_in_both_orders) {
  const auto body = [](auto&) {
    troupe::runtime rt;
    auto desk = rt.spawn<Desk>();
    rt.spawn<Visitor>(desk).template tell<&Visitor::open>();
    rt.spawn<Visitor>(desk).template tell<&Visitor::ask>();
    rt.run();
  };
  const troupe::explore_report plain = troupe::explore(body, {.schedules = 1});
  EXPECT_EQ(plain.handler_pairs, 2u);
  EXPECT_EQ(plain.pairs_in_both_orders, 0u);
  EXPECT_EQ(plain.pairs_in_one_order,
            "Desk::ask before Desk::answer\nDesk::open before Desk::ask\n");
  const troupe::explore_report many = troupe::explore(body, {.schedules = 100});
  EXPECT_EQ(many.handler_pairs, 3u);
  EXPECT_EQ(many.pairs_in_both_orders, 2u);
  EXPECT_EQ(many.pairs_in_one_order, "Desk::ask before Desk::answer\n");
  EXPECT_NE(testing::PrintToString(many).find("2 of 3 pairs of handlers of an actor"),
            std::string::npos);
  const troupe::explore_report none = troupe::explore([](auto&) {}, {.schedules = 3});
  EXPECT_EQ(none.handler_pairs, 0u);
}

TEST(searches, end_with_their_time) {
  EXPECT_EQ(troupe::explore([](auto&) {}, {.time = 0s}).schedules, 1u);
}

// The timers of a program that polls end a turn that is held for time to pass.
TEST(searches, do_not_hold_a_turn_while_a_timer_repeats) {
  const troupe::explore_report report = troupe::explore(
      [](auto&) {
        troupe::runtime rt;
        auto counter = rt.spawn<Counter>();
        troupe::timer polls = rt.every(1ms, [] {});
        rt.after(20ms, [&] { polls.cancel(); });
        counter.template tell<&Counter::add>();
        rt.run();
      },
      {.schedules = 200});
  EXPECT_TRUE(report) << report;
}

class schedule_files : public testing::Test {
 protected:
  schedule_files() { std::filesystem::create_directory(folder_); }
  ~schedule_files() override { std::filesystem::remove_all(folder_); }
  const std::string folder_ =
      (std::filesystem::temp_directory_path() / ("schedules." + std::to_string(::getpid())))
          .string();
};

TEST_F(schedule_files, are_a_regression_suite_of_their_names) {
  const auto body = planted::bugs().front().body;
  const auto options = [this](const char* name) {
    return troupe::explore_options{.schedules = 100, .name = name, .folder = folder_};
  };
  const troupe::explore_report found = troupe::explore(body, options("a lost update"));
  ASSERT_EQ(found.file, folder_ + "/a_lost_update.schedule");
  const troupe::test::scoped_environment replay("TROUPE_REPLAY", folder_.c_str());
  const troupe::explore_report again = troupe::explore(body, options("a lost update"));
  EXPECT_EQ(again.failure, found.failure);
  EXPECT_EQ(again.schedules, 1u);
  EXPECT_EQ(again.unmet, "");
  EXPECT_EQ(troupe::explore(body, options("another")).schedules, found.schedules);
  // a program that was repaired passes, and is searched on
  const troupe::explore_report repaired = troupe::explore([](auto&) {}, options("a lost update"));
  EXPECT_TRUE(repaired);
  EXPECT_EQ(repaired.schedules, 101u);
  EXPECT_NE(repaired.unmet, "");
}

TEST_F(schedule_files, run_alone_if_one_is_named) {
  const auto body = planted::bugs().front().body;
  const std::string file = troupe::explore(body, {.name = "one", .folder = folder_}).file;
  const troupe::test::scoped_environment replay("TROUPE_REPLAY", file.c_str());
  EXPECT_EQ(troupe::explore(body, {.name = "other"}).schedules, 1u);
  EXPECT_EQ(troupe::explore([](auto&) {}).schedules, 1u);
}

TEST(schedule_texts, are_read_as_they_are_written) {
  using namespace troupe::sched::exploring;
  kept_schedule kept;
  kept.program = "5f0c";
  kept.test = "a name of three words";
  kept.plan.seed = UINT64_MAX;
  kept.plan.turns_max = 17;
  kept.plan.holds = {{.held = {1, 2, 3}, .until = {}},
                     {.held = {UINT64_MAX, 5, 6}, .until = turn_id{7, 8, 9}, .late = true},
                     {.held = {10, 11, 0}, .until = {}, .connection = true},
                     {.held = {12, 13, 4}, .until = {}, .injected = troupe::sched::fault::cut},
                     {.held = {0, 5, 0}, .until = {}, .injected = troupe::sched::fault::slow_file}};
  kept.hashes = {12, UINT64_MAX};
  kept.remarks = "two\nlines\n";
  const std::string text = text_of(kept);
  EXPECT_EQ(text_of(parse_schedule(text, "here")), text);
  EXPECT_EQ(parse_schedule(text, "here").plan.holds, kept.plan.holds);
  kept.plan.by = strategy::priorities;
  kept.plan.depth = 3;
  kept.plan.faults = {{troupe::sched::fault::write_fails, 3}};
  kept.plan.held_arrivals = {4, 5};
  kept.plan.held_returns = {6, UINT64_MAX};
  EXPECT_EQ(text_of(parse_schedule(text_of(kept), "here")), text_of(kept));
  EXPECT_EQ(parse_schedule(text_of(kept), "here").plan.faults, kept.plan.faults);
  EXPECT_EQ(parse_schedule(text_of(kept), "here").plan.held_returns, kept.plan.held_returns);
}

TEST(schedule_texts, have_a_name_for_each_fault) {
  using namespace troupe::sched;
  constexpr std::array every{fault::cut,         fault::lost,         fault::slow,
                             fault::slow_file,   fault::write_fails,  fault::storage_fails,
                             fault::storage_cut, fault::storage_slow, fault::storage_stalls,
                             fault::commit_lost};
  std::set<std::string> names, effects;
  for (const fault kind : every) {
    const exploring::hold kept{.held = {1, 2, 3}, .until = {}, .injected = kind};
    EXPECT_EQ(exploring::parse_hold(exploring::text_of(kept)), kept);
    names.insert(exploring::text_of(kept));
    effects.insert(exploring::text_of_fault(kept));
  }
  EXPECT_EQ(names.size(), every.size());
  EXPECT_EQ(effects.size(), every.size());
}

TEST(schedule_texts, name_the_wrong_line) {
  for (const char* const line :
       {"hold", "hold x 1 0", "hold 1 1", "hold 1 1 0 until 3", "hold 1 1 0 soon", "seed",
        "seed 1x", "hold 1 4294967296 0", "strategy dice 1 0 0", "holds 1 1 0", "hash 1000",
        "return x", "fault none 1 1 0", "fault flood 1 1 0", "fault cut 1 1",
        "planned-fault cut"}) {
    try {
      troupe::sched::exploring::parse_schedule(std::string("troupe schedule 1\nseed 1\n") + line,
                                               "file");
      ADD_FAILURE() << line;
    } catch (const troupe::option_error& wrong) {
      EXPECT_NE(std::string(wrong.what()).find("file, line 3"), std::string::npos) << wrong.what();
    }
  }
  EXPECT_THROW(troupe::sched::exploring::parse_schedule("troupe schedule 2\n", "file"),
               troupe::option_error);
  EXPECT_THROW(troupe::sched::exploring::read_schedule("/nowhere"), troupe::option_error);
}

TEST(stories, tell_the_turns_that_led_to_the_failure) {
  const auto find = [](const char* name) {
    for (const planted::bug& of : planted::bugs()) {
      if (of.name == std::string(name)) return troupe::explore(of.body).story;
    }
    return std::string();
  };
  const std::string update = find("lost_update");
  for (const char* const part : {"Clerk::deliver of", "Stock::read of", "Clerk::got of",
                                 "Stock::write of", "sent by", "it was held"})
    EXPECT_NE(update.find(part), std::string::npos) << part << " is not in\n" << update;
  const std::string overtaken = find("overtaken_over_2_hops");
  EXPECT_NE(overtaken.find("Target::use of"), std::string::npos) << overtaken;
  EXPECT_NE(overtaken.find("not handled yet: "), std::string::npos) << overtaken;
  EXPECT_EQ(overtaken.find("Noise"), std::string::npos) << overtaken;
}

TEST(explore, refuses_a_name_with_a_line_break) {
  EXPECT_THROW(troupe::explore([](auto&) {}, {.name = "a\nb"}), troupe::option_error);
}

}  // namespace
