// A trace goes with a call: to its branches and children, to the handlers that it asks and tells,
// to its lazies and blocking functions. A tell takes along nothing else.
//
// The callables capture by reference: g++ 12 destroys the captures of a temporary closure in a
// co_await expression twice.
#include <atomic>
#include <mutex>
#include <vector>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class traces : public conformance {};

using seen_traces = std::vector<std::optional<trace_context>>;

const trace_context root =
    *trace_context::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");

struct part {
  std::optional<trace_context> in_part;
  void note() { in_part = this_call::trace(); }
};

// Notes the trace in which each of its handlers runs.
struct noting : part {
  seen_traces seen;
  std::optional<std::chrono::nanoseconds> left;
  counted here;
  void plain() {
    seen.push_back(this_call::trace());
    left = this_call::remaining();
  }
  void pass_on(ref<noting> to) {
    plain();
    to.tell<&noting::plain>();
  }
  task<> waits() {
    seen.push_back(this_call::trace());
    co_await sleep_for(1ms);
    seen.push_back(this_call::trace());
    left = this_call::remaining();
  }
  int answers() {
    plain();
    return 1;
  }
  task<int> answers_later() {
    co_await waits();
    co_return 2;
  }
  void fails() { throw std::runtime_error("on purpose"); }
  seen_traces take() { return std::exchange(seen, {}); }
  std::optional<trace_context> take_part() { return in_part; }
};

TEST_P(traces, outside_of_one_there_is_none) {
  runtime rt(options());
  EXPECT_FALSE(this_call::trace());
  rt.spawn([]() -> task<> {
    EXPECT_FALSE(this_call::trace());
    co_await with_trace(root, []() -> task<> {
      EXPECT_EQ(this_call::trace(), root);
      co_await yield();
      EXPECT_EQ(this_call::trace(), root);
      const trace_context inner = root.child();
      co_await with_trace(inner, [&]() -> task<> {
        EXPECT_EQ(this_call::trace(), inner);
        co_return;
      });
      EXPECT_EQ(this_call::trace(), root);
    });
    EXPECT_FALSE(this_call::trace());
  });
  rt.run();
}

TEST_P(traces, branches_and_children_run_in_it) {
  runtime rt(options());
  std::vector<std::optional<trace_context>> seen;
  rt.spawn([&]() -> task<> {
    co_await with_trace(root, [&]() -> task<> {
      const auto note = [&]() -> task<> {
        co_await sleep_for(1ms);
        seen.push_back(this_call::trace());
      };
      co_await when_all(note(), note());
      co_await scope([&](task_scope& s) {
        s.spawn(note);
        s.spawn(note);
      });
      co_await with_deadline(1h, note);
      co_await blocking([&] { seen.push_back(this_call::trace()); });
      lazy<int> later([&] {
        seen.push_back(this_call::trace());
        return 1;
      });
      const int value = co_await later;
      EXPECT_EQ(value, 1);
    });
  });
  rt.run();
  EXPECT_EQ(seen, seen_traces(7, root));
}

TEST_P(traces, asks_and_tells_take_it_along) {
  runtime rt(options());
  const auto to = rt.spawn<noting>(), next = rt.spawn<noting>();
  rt.spawn([=]() -> task<> {
    to.tell<&noting::plain>();
    co_await with_trace(root, [&]() -> task<> {
      to.tell<&noting::plain>();
      to.tell([](noting& self) { self.plain(); });
      to.tell<&noting::waits>();
      co_await to.ask<&noting::answers>();
      co_await to.ask<&noting::answers_later>();
      co_await to.send<&noting::plain>();
      to.tell<&noting::pass_on>(next);
      ref<part>(to).tell<&part::note>();
    });
    to.tell<&noting::plain>();
    const seen_traces seen = co_await to.ask<&noting::take>();
    EXPECT_EQ(seen.size(), 11u);
    EXPECT_FALSE(seen.front());
    EXPECT_FALSE(seen.back());
    EXPECT_EQ(seen_traces(seen.begin() + 1, seen.end() - 1), seen_traces(seen.size() - 2, root));
    const auto in_part = co_await to.ask<&noting::take_part>();
    EXPECT_EQ(in_part, root);
    co_await sleep_for(5ms);
    const seen_traces passed_on = co_await next.ask<&noting::take>();
    EXPECT_EQ(passed_on, seen_traces(1, root));
  });
  rt.run();
}

TEST_P(traces, a_tell_takes_along_no_deadline) {
  runtime rt(options());
  const auto to = rt.spawn<noting>();
  rt.spawn([=]() -> task<> {
    co_await with_trace(root, [&]() -> task<> {
      co_await with_deadline(1h, [&]() -> task<> {
        to.tell<&noting::plain>();
        co_await to.ask<&noting::take>();
        const auto left = co_await to.ask([](noting& self) { return *self.left; });
        EXPECT_EQ(left, std::chrono::nanoseconds::max());
        co_await to.ask<&noting::answers>();
        const auto left_of_ask = co_await to.ask([](noting& self) { return *self.left; });
        EXPECT_LE(left_of_ask, 1h);
      });
    });
    // What outlives the call is not cancelled with it.
    co_await with_trace(root, [&]() -> task<> {
      try {
        co_await with_deadline(1ms, [&]() -> task<> {
          to.tell([](noting& self) -> task<> {
            co_await sleep_for(20ms);
            self.seen.push_back(this_call::trace());
          });
          co_await sleep_for(1h);
        });
      } catch (const timed_out&) {
      }
    });
    const seen_traces seen = co_await to.ask<&noting::take>();
    EXPECT_EQ(seen.back(), root);
  });
  rt.run();
}

// Spawns a task, which outlives the handler.
struct spawning {
  std::optional<trace_context> in_task;
  void spawns(ref<spawning> to) {
    spawn(
        [](ref<spawning> it) -> task<> {
          co_await sleep_for(2ms);
          it.tell([seen = this_call::trace()](spawning& self) { self.in_task = seen; });
        },
        std::move(to));
  }
};

TEST_P(traces, spawned_tasks_take_it_along) {
  runtime rt(options());
  const auto to = rt.spawn<spawning>();
  std::mutex guards_seen;
  seen_traces seen;
  const auto notes = [&]() -> task<> {
    for (int i = 0; i < 2; ++i) {
      {
        std::lock_guard lock(guards_seen);
        seen.push_back(this_call::trace());
      }
      co_await sleep_for(1ms);
    }
    EXPECT_EQ(this_call::remaining(), std::chrono::nanoseconds::max());
  };
  const auto all = [&]() -> task<> {
    rt.spawn(notes());
    future<> last = rt.spawn(notes());
    co_await std::move(last);
    co_await to.ask<&spawning::spawns>(to);
  };
  rt.spawn([&]() -> task<> {
    co_await with_trace(root, [&]() -> task<> { co_await with_deadline(1h, all); });
    future<> outside = rt.spawn([]() -> task<> {
      EXPECT_FALSE(this_call::trace());
      co_return;
    });
    co_await std::move(outside);
  });
  rt.run();
  EXPECT_EQ(seen, seen_traces(4, root));
  auto in_task = to.ask([](spawning& self) { return self.in_task; });
  rt.run();
  EXPECT_EQ(in_task.get(), root);
}

TEST_P(traces, calls_of_timers_take_it_along) {
  runtime rt(options());
  std::mutex guards_seen;
  seen_traces seen;
  std::stop_source enough;
  const auto note = [&] {
    std::lock_guard lock(guards_seen);
    seen.push_back(this_call::trace());
    EXPECT_EQ(this_call::remaining(), std::chrono::nanoseconds::max());
    if (seen.size() == 4) enough.request_stop();
  };
  rt.spawn([&]() -> task<> {
    co_await with_trace(root, [&]() -> task<> {
      const auto all = [&]() -> task<> {
        rt.after(1ms, note);
        rt.after(1ms, note, {.context = context_options{}});
        rt.every(1ms, note, {.stop = enough.get_token()});
        co_return;
      };
      co_await with_deadline(1h, all);
    });
  });
  rt.run();
  ASSERT_GE(seen.size(), 4u);
  for (const auto& each : seen) EXPECT_EQ(each, root);
  rt.after(1ms, [] { EXPECT_FALSE(this_call::trace()); });
  rt.run();
}

// Nobody takes their results, and some have not begun when the runtime ends.
TEST_P(traces, spawned_tasks_that_never_begin_are_freed) {
  const auto waits = [](counted) -> task<> { co_await sleep_for(1h); };
  runtime rt(options());
  rt.spawn([&]() -> task<> {
    co_await with_trace(root, [&]() -> task<> {
      for (int i = 0; i < 10; ++i) rt.spawn(waits(counted()));
      rt.stop(stop_mode::discard);
      for (int i = 0; i < 10; ++i) rt.spawn(waits(counted()));
      co_return;
    });
  });
  rt.run();
}

TEST_P(traces, reports_name_the_handler) {
  runtime_options chosen = options();
  std::vector<std::string> dead;
  std::mutex guards_dead;
  chosen.on_dead_letter = [&](const dead_letter& one) {
    std::lock_guard lock(guards_dead);
    dead.push_back(std::string(one.method));
  };
  runtime rt(chosen);
  const auto to = rt.spawn<noting>(), gone = rt.spawn<noting>();
  rt.spawn([=]() -> task<> {
    co_await with_trace(root, [&]() -> task<> {
      to.tell<&noting::fails>();
      gone.stop();
      co_await gone.watch();
      gone.tell<&noting::plain>();
    });
  });
  try {
    rt.run();
    ADD_FAILURE() << "no failure";
  } catch (const std::exception& e) {
    EXPECT_STREQ(e.what(), "on purpose");
  }
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_NE(dead[0].find("plain"), std::string::npos) << dead[0];
}

TEST_P(traces, bounded_mailboxes_count_their_messages) {
  runtime rt(options());
  const auto to = rt.spawn<noting>({.mailbox = {.messages = 4, .when_full = when_full::fail}});
  rt.spawn([=]() -> task<> {
    co_await with_trace(root, [&]() -> task<> {
      for (int round = 0; round < 100; ++round) {
        for (int i = 0; i < 3; ++i) to.tell<&noting::plain>();
        co_await to.ask<&noting::answers>();
      }
    });
    const seen_traces seen = co_await to.ask<&noting::take>();
    EXPECT_EQ(seen, seen_traces(400, root));
  });
  rt.run();
}

TROUPE_TEST_EACH(traces, all_settings);

}  // namespace
}  // namespace troupe::test
