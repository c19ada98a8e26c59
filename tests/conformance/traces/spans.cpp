// Spans: what of a trace is recorded, and under which parent.
//
// The callables capture by reference: g++ 12 destroys the captures of a temporary closure in a
// co_await expression twice.
#include <stdexcept>
#include <string>
#include <vector>

#include "support/conformance.hpp"
#include "support/counted.hpp"
#include "support/recorded_spans.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using tasks::ended_spans;
using tasks::span_record;

using id = std::array<std::uint8_t, 8>;

const trace_context root =
    *trace_context::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");

struct leaf {
  counted here;
  int answers() { return 1; }
  task<int> later() {
    co_await sleep_for(1ms);
    co_return 2;
  }
  void fails() { throw std::runtime_error("a secret"); }
  task<> fails_later() {
    co_await sleep_for(1ms);
    throw std::runtime_error("a secret");
  }
};

struct middle {
  ref<leaf> below;
  task<int> asks() {
    const int first = co_await below.ask<&leaf::answers>();
    const int second = co_await below.ask<&leaf::later>();
    co_return first + second;
  }
  future<int> passes_on() { return below.ask<&leaf::later>(); }
  task<> told() {
    co_await sleep_for(1ms);
    co_await below.ask<&leaf::answers>();
  }
};

class spans : public conformance {};

// The name of the handler in what is recorded.
template <auto Method>
std::string named() {
  return base::value_name<Method>();
}

TEST_P(spans, without_an_exporter_there_are_none) {
  runtime rt(options());
  rt.spawn([]() -> task<> {
    const int value = co_await with_span("unseen", []() -> task<int> {
      EXPECT_FALSE(this_call::trace());
      this_call::span_attribute("key", 1);
      co_return 7;
    });
    EXPECT_EQ(value, 7);
  });
  rt.run();
  EXPECT_EQ(ended_spans.waiting(), 0u);
}

TEST_P(spans, asks_of_asks_are_a_tree) {
  recording seen;
  {
    runtime rt(options());
    const auto below = rt.spawn<leaf>();
    const auto between = rt.spawn<middle>(below);
    rt.spawn([&]() -> task<> {
      co_await below.ask<&leaf::answers>();  // in no trace
      co_await with_span("outer", [&]() -> task<> {
        EXPECT_TRUE(this_call::trace());
        this_call::span_attribute("items", 3);
        this_call::span_attribute("text", "four");
        const int sum = co_await between.ask<&middle::asks>();
        EXPECT_EQ(sum, 3);
      });
      EXPECT_FALSE(this_call::trace());
    });
    rt.run();
  }
  EXPECT_EQ(seen.take().size(), 4u);
  const span_record& outer = seen.only("outer");
  const span_record& asked = seen.only(named<&middle::asks>());
  EXPECT_EQ(outer.parent, id());
  EXPECT_EQ(text_of(outer, "items"), "3");
  EXPECT_EQ(text_of(outer, "text"), "four");
  EXPECT_EQ(asked.parent, outer.at.span_id);
  EXPECT_NE(text_of(asked, "troupe.actor.class").find("middle"), std::string::npos);
  for (const std::string& name : {named<&leaf::answers>(), named<&leaf::later>()}) {
    const span_record& inner = seen.only(name);
    EXPECT_EQ(inner.parent, asked.at.span_id);
    EXPECT_EQ(inner.at.trace_id, outer.at.trace_id);
    EXPECT_GE(inner.began_unix_ns, asked.began_unix_ns - 1'000'000'000);
    EXPECT_GE(inner.ended_unix_ns, inner.began_unix_ns);
    EXPECT_FALSE(inner.failed);
  }
}

TEST_P(spans, of_all_kinds_of_calls) {
  recording seen;
  {
    runtime rt(options());
    const auto below = rt.spawn<leaf>();
    const auto between = rt.spawn<middle>(below);
    rt.spawn([&]() -> task<> {
      co_await with_trace(root, [&]() -> task<> {
        between.tell<&middle::told>();  // no span of its own, and its ask is in the trace
        rt.spawn([&]() -> task<> {
          co_await with_span("spawned", [&] { return below.ask<&leaf::later>(); });
        });
        const int passed = co_await between.ask<&middle::passes_on>();
        EXPECT_EQ(passed, 2);
        co_await blocking([] { EXPECT_TRUE(this_call::trace()); });
        lazy<int> later([] { return 1; });
        co_await later;
        co_await with_deadline(1h, [&]() -> task<> {
          co_await with_span("within", []() -> task<> { co_await sleep_for(1ms); });
        });
      });
    });
    rt.run();
  }
  for (const char* name : {"spawned", "blocking", "lazy", "within"}) {
    EXPECT_EQ(seen.only(name).parent, root.span_id) << name;
  }
  EXPECT_EQ(seen.only(named<&middle::passes_on>()).parent, root.span_id);
  EXPECT_EQ(seen.only(named<&leaf::answers>()).parent, root.span_id);
  EXPECT_EQ(seen.take().count(named<&leaf::later>()), 2u);
  EXPECT_EQ(seen.take().size(), 8u);
  for (const auto& [name, one] : seen.take()) EXPECT_EQ(one->at.trace_id, root.trace_id) << name;
}

TEST_P(spans, failures_are_known_by_their_class_only) {
  recording seen;
  {
    runtime rt(options());
    const auto below = rt.spawn<leaf>();
    rt.spawn([&]() -> task<> {
      try {
        co_await with_span("both", [&]() -> task<> {
          try {
            co_await below.ask<&leaf::fails>();
          } catch (const std::runtime_error&) {
          }
          co_await below.ask<&leaf::fails_later>();
        });
      } catch (const std::runtime_error&) {
      }
      try {
        co_await with_span("late", [&]() -> task<> {
          auto slow = [&] { return below.ask([](leaf&) -> task<> { co_await sleep_for(1h); }); };
          // Enough for a busy machine to begin the handler: one that begins late is not run.
          co_await with_deadline(500ms, slow);
        });
      } catch (const timed_out&) {
      }
    });
    rt.run();
  }
  EXPECT_EQ(seen.take().size(), 5u);
  for (const auto& [name, one] : seen.take()) {
    EXPECT_TRUE(one->failed) << name;
    for (const tasks::span_attribute& each : one->attributes)
      EXPECT_EQ(text_of(*one, each.key).find("secret"), std::string::npos);
  }
  EXPECT_EQ(text_of(seen.only("both"), "error.type"), "std::runtime_error");
  EXPECT_EQ(text_of(seen.only("late"), "error.type"), "troupe::timed_out");
}

// Those that never end by themselves end with their context.
TEST_P(spans, of_what_is_discarded_end_too) {
  recording seen;
  std::atomic<bool> begun{false};
  {
    runtime rt(options());
    const auto below = rt.spawn<leaf>();
    rt.spawn([&]() -> task<> {
      co_await with_span("waits", [&]() -> task<> {
        auto waits = [&](leaf&) -> task<> {
          begun = true;
          co_await sleep_for(1h);
        };
        co_await below.ask(std::move(waits));
      });
    });
    rt.spawn([&]() -> task<> {
      while (!begun) co_await sleep_for(1ms);
      rt.stop(stop_mode::discard);
    });
    rt.run();
  }
  EXPECT_TRUE(seen.has("waits"));
  EXPECT_EQ(seen.take().size(), 2u);
}

TEST_P(spans, the_caller_decides_what_is_sampled) {
  recording seen(0);
  {
    runtime rt(options());
    const auto below = rt.spawn<leaf>();
    rt.spawn([&]() -> task<> {
      // The rate is none.
      co_await with_span("unseen", [&]() -> task<> {
        const auto here = this_call::trace();
        EXPECT_TRUE(here);
        EXPECT_FALSE(here.value_or(root).sampled);
        co_await below.ask<&leaf::answers>();
        co_await with_span("unseen, too", [&]() -> task<> {
          EXPECT_EQ(this_call::trace(), here);
          co_return;
        });
      });
      co_await with_trace(root, [&]() -> task<> { co_await below.ask<&leaf::answers>(); });
      trace_context unsampled = root;
      unsampled.sampled = false;
      co_await with_trace(unsampled, [&]() -> task<> {
        co_await below.ask<&leaf::answers>();
        co_await blocking([] {});
      });
    });
    rt.run();
  }
  EXPECT_EQ(seen.take().size(), 1u);
  EXPECT_EQ(seen.only(named<&leaf::answers>()).parent, root.span_id);
}

TEST_P(spans, a_part_is_sampled_by_rate) {
  recording seen(0.25);
  {
    runtime rt(options());
    rt.spawn([&]() -> task<> {
      for (int i = 0; i < 2000; ++i) co_await with_span("one", []() -> task<> { co_return; });
    });
    rt.run();
  }
  const std::size_t count = seen.take().size();
  EXPECT_GT(count, 350u);  // 500, give or take 8 standard deviations
  EXPECT_LT(count, 650u);
}

TEST_P(spans, no_more_than_the_most_wait) {
  recording seen(1, 10);
  {
    runtime rt(options());
    rt.spawn([&]() -> task<> {
      for (int i = 0; i < 25; ++i) co_await with_span("one", []() -> task<> { co_return; });
    });
    rt.run();
  }
  EXPECT_EQ(ended_spans.waiting(), 10u);
  EXPECT_EQ(ended_spans.dropped(), 15u);
  EXPECT_EQ(seen.take().size(), 10u);
  EXPECT_EQ(ended_spans.waiting(), 0u);
  EXPECT_FALSE(ended_spans.open(1, 1, 1)) << "there is one already";
}

// An exporter may come and go while spans are open.
TEST_P(spans, may_outlive_their_exporter) {
  runtime rt(options());
  const auto below = rt.spawn<leaf>();
  event gone;
  rt.spawn([&]() -> task<> {
    co_await with_span("open", [&]() -> task<> {
      co_await gone.wait();
      co_await below.ask<&leaf::later>();
    });
  });
  rt.spawn([&]() -> task<> {
    {
      const recording seen;
      co_await with_span("first", [&] { return below.ask<&leaf::later>(); });
    }
    gone.set();
  });
  rt.run();
  EXPECT_EQ(ended_spans.waiting(), 0u);
}

TROUPE_TEST_EACH(spans, all_settings);

}  // namespace
}  // namespace troupe::test
