// What another process sees of an observed program: exact counts by class and handler, all actors
// page by page, and the longest mailboxes.
#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "support/observed.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

struct observed_base {
  int base = 0;
  void of_base() { ++base; }
};
struct observed_sink : observed_base {
  int sum = 0;
  void put(int n) { sum += n; }
  int get() { return sum; }
  task<int> get_later() {
    co_await sleep_for(1ms);
    co_return sum;
  }
  void fail() { throw std::runtime_error("on purpose"); }
};
struct observed_source {
  ref<observed_sink> to;
  void feed(int left) {
    to.tell<&observed_sink::put>(left);
    if (left > 0) self(this).tell<&observed_source::feed>(left - 1);
  }
  task<> asks(int times) {
    for (int i = 0; i < times; ++i) {
      co_await to.ask<&observed_sink::get>();
      co_await to.ask<&observed_sink::get_later>();
    }
  }
};

TEST_P(observing, counts_are_exact_and_add_up_to_the_metrics) {
  runtime rt(observed());
  auto sink = rt.spawn<observed_sink>();
  std::vector<ref<observed_source>> sources;
  for (int i = 0; i < 10; ++i) sources.push_back(rt.spawn<observed_source>(sink));
  for (const auto& one : sources) {
    one.tell<&observed_source::feed>(999);
    one.tell<&observed_source::asks>(20);
  }
  for (int i = 0; i < 3; ++i) sink.tell<&observed_sink::fail>();
  for (int i = 0; i < 5; ++i) ref<observed_base>(sink).tell<&observed_base::of_base>();
  sources.pop_back();  // one actor ends
  EXPECT_THROW(rt.run(), std::runtime_error);
  static_cast<void>(rt.take_errors());

  const json seen = asker().ask("summary");
  ASSERT_EQ(seen["runtimes"].size(), 1u) << seen;
  const json& own = seen["runtimes"][0];
  EXPECT_EQ(handler_of(own, "observed_sink", "::put")["messages"], 10'000);
  EXPECT_EQ(handler_of(own, "observed_sink", "::get")["messages"], 200);
  EXPECT_EQ(handler_of(own, "observed_sink", "::get_later")["messages"], 200);
  EXPECT_GE(handler_of(own, "observed_sink", "::get_later")["resumed"], 200);
  EXPECT_EQ(handler_of(own, "observed_sink", "::fail")["messages"], 3);
  EXPECT_EQ(handler_of(own, "observed_sink", "::fail")["failures"], 3);
  EXPECT_EQ(handler_of(own, "observed_sink", "::of_base")["messages"], 5);
  EXPECT_EQ(handler_of(own, "observed_source", "::feed")["messages"], 10'000);
  EXPECT_EQ(named(own["classes"], "class", "observed_source")["alive"], 9);
  EXPECT_EQ(named(own["classes"], "class", "observed_sink")["alive"], 1);
  EXPECT_EQ(named(own["classes"], "class", "observed_sink")["suspended"], 0);

  std::uint64_t parts = 0;
  for (const json& one : own["classes"]) {
    for (const json& handler : one["handlers"])
      parts += handler["messages"].get<std::uint64_t>() + handler["resumed"].get<std::uint64_t>();
  }
  EXPECT_EQ(parts, rt.metrics().total.messages) << own;
  EXPECT_EQ(own["total"]["messages"], rt.metrics().total.messages);

  // messages of edges are an estimate
  std::uint64_t messages = 0;
  for (const json& edge : own["edges"]) {
    if (edge["handler"].get<std::string>().ends_with("::put"))
      messages += edge["messages"].get<std::uint64_t>();
  }
  EXPECT_GT(messages, 10'000u / 3);
  EXPECT_LT(messages, 10'000u * 3);
  EXPECT_GT(handler_of(own, "observed_sink", "::put")["wait_samples"], 0);
  EXPECT_GT(handler_of(own, "observed_sink", "::put")["busy_samples"], 10'000 / 1024);
}

TEST_P(observing, timers_are_counted_by_source) {
  runtime rt(observed());
  rt.spawn([]() -> task<> {
    for (int i = 0; i < 7; ++i) co_await sleep_for(1us);
  });
  rt.after(1us, [] {});
  timer never = rt.after(1h, [] {});
  never.cancel();
  int left = 3;
  timer repeated = rt.every(1us, [&] {
    if (--left == 0) repeated.cancel();
  });
  promise<> end;
  rt.spawn([&]() -> task<> { co_await end.get_future().timeout(1h); });
  rt.spawn([&]() -> task<> {
    co_await sleep_for(1us);
    end.set_value();
  });
  rt.run();
  const json own = asker().ask("summary")["runtimes"][0];
  const auto counts = [&](const char* source) {
    json one = named(own["timers"], "source", source);
    one.erase("source");
    return one;
  };
  EXPECT_EQ(counts("sleep"), (json{{"armed", 8}, {"expired", 8}, {"cancelled", 0}})) << own;
  EXPECT_EQ(counts("after"), (json{{"armed", 2}, {"expired", 1}, {"cancelled", 1}})) << own;
  EXPECT_GE(counts("every")["expired"], 3) << own;
  EXPECT_EQ(counts("timeout"), (json{{"armed", 1}, {"expired", 0}, {"cancelled", 1}})) << own;
  EXPECT_EQ(counts("deadline")["armed"], 0) << own;
}

TEST_P(observing, all_actors_are_listed_page_by_page) {
  runtime rt(observed());
  std::vector<ref<observed_sink>> sinks;
  std::set<std::uint64_t> ids;
  for (int i = 0; i < 10'000; ++i) {
    sinks.push_back(rt.spawn<observed_sink>());
    ids.insert(sinks.back().id());
  }
  rt.run();
  asker here;
  const std::string of_class =
      named(here.ask("summary")["runtimes"][0]["classes"], "class", "observed_sink")["class"];
  std::set<std::uint64_t> seen;
  std::uint64_t from = 0;
  do {
    const json page = here.ask("actors 0 " + std::to_string(from) + " 999 " + of_class);
    EXPECT_LE(page["actors"].size(), 999u);
    for (const json& one : page["actors"]) {
      EXPECT_TRUE(seen.insert(one["id"].get<std::uint64_t>()).second) << one;
      EXPECT_EQ(one["state"], "inactive");
    }
    from = page["next"].get<std::uint64_t>();
  } while (from != 0);
  EXPECT_EQ(seen, ids);
}

TEST_P(observing, the_longest_mailbox_is_found) {
  struct waiting {
    future<> until;
    task<> wait() { co_await std::move(until); }
    void quick() {}
  };
  runtime rt(observed());
  promise<> end;
  std::vector<ref<waiting>> all;
  for (int i = 0; i < 100; ++i) all.push_back(rt.spawn<waiting>(future<>()));
  const auto busy = rt.spawn<waiting>(end.get_future());
  std::vector<json> found;
  rt.spawn([&]() -> task<> {
    busy.tell<&waiting::wait>();
    for (int i = 0; i < 100; ++i) all[static_cast<std::size_t>(i)].tell<&waiting::quick>();
    co_await sleep_for(5ms);
    for (int i = 0; i < 321; ++i) busy.tell<&waiting::quick>();
    co_await sleep_for(5ms);
    found.push_back(asker().ask("longest 0 5"));
    end.set_value();
  });
  rt.run();
  ASSERT_EQ(found.size(), 1u);
  ASSERT_FALSE(found[0]["actors"].empty());
  EXPECT_EQ(found[0]["actors"][0]["id"], busy.id());
  EXPECT_EQ(found[0]["actors"][0]["mail"], 321);
  EXPECT_EQ(found[0]["actors"][0]["state"], "suspended");
}

// Two reentrant actors that ask each other: the last of them waits for `until`.
struct asking_pair {
  static constexpr bool reentrant = true;
  ref<asking_pair> other;
  event until{};
  void meet(ref<asking_pair> one) { other = std::move(one); }
  void open() { until.set(); }
  task<int> pass(int left) {
    if (left == 0) co_await until.wait();
    if (left == 0) co_return 1;
    co_return co_await other.ask<&asking_pair::pass>(left - 1) + 1;
  }
};

json asked_until_found(asker& here, const std::string& question, const auto& holds) {
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  json seen;
  do {
    seen = here.ask(question);
  } while (!holds(seen) && std::chrono::steady_clock::now() < deadline);
  return seen;
}

TEST_P(observing, what_calls_wait_for_is_told_by_kind_and_by_actor) {
  if (GetParam().policy == policy::simulated) GTEST_SKIP() << "another thread looks meanwhile";
  runtime_options chosen = observed();
  chosen.warnings.ask = 100ms;  // so that it looks often
  chosen.warning_lines = 0;
  runtime rt(chosen);
  const auto one = rt.spawn<asking_pair>(), other = rt.spawn<asking_pair>(one);
  one.tell<&asking_pair::meet>(other);
  one.tell<&asking_pair::pass>(9);
  std::thread looks([&, held = rt.hold()] {
    asker asks;
    const json waits = asked_until_found(asks, "waits 0",
                                         [](const json& seen) { return seen["suspended"] == 10; });
    EXPECT_EQ(waits["suspended"], 10) << waits;
    std::uint64_t asking = 0;
    for (const json& kind : waits["waits"]) {
      EXPECT_TRUE(kind["class"].get<std::string>().ends_with("asking_pair")) << kind;
      if (kind["for"].get<std::string>().starts_with("the answer of ")) {
        EXPECT_EQ(kind["of_class"], kind["class"]) << kind;
        EXPECT_TRUE(kind["at"].get<std::string>().starts_with("observing.cpp:")) << kind;
        asking += kind["calls"].get<std::uint64_t>();
      }
    }
    EXPECT_EQ(asking, 9u) << waits;

    const json story = asks.ask("actor 0 " + std::to_string(one.id()));
    EXPECT_EQ(story["actor"]["id"], one.id()) << story;
    EXPECT_EQ(story["suspended"], 5) << story;
    ASSERT_EQ(story["calls"].size(), 5u) << story;
    EXPECT_EQ(story["calls"][0]["asked"], other.id()) << story;
    EXPECT_TRUE(asks.ask("actor 0 999999999")["actor"].is_null());
    // the looks at all waits say since when
    const json waited = asked_until_found(
        asks, "actor 0 " + std::to_string(one.id()),
        [](const json& seen) { return seen["calls"][0].value("waits_ns", std::int64_t{0}) > 0; });
    EXPECT_GT(waited["calls"][0].value("waits_ns", std::int64_t{0}), 0) << waited;
    other.tell<&asking_pair::open>();
  });
  rt.run();
  looks.join();
}

TEST_P(observing, the_time_of_each_thread_adds_up_to_the_handlers) {
  runtime rt(observed());
  auto sink = rt.spawn<observed_sink>();
  for (int i = 0; i < 5'000; ++i) sink.tell<&observed_sink::put>(i);
  rt.run();
  std::uint64_t messages = 0;
  const json seen = asker().ask("threads 0");
  for (const json& thread : seen["threads"]) {
    EXPECT_LE(thread["worker"], rt.metrics().workers.size()) << thread;
    for (const json& of_class : thread["classes"]) {
      for (const json& handler : of_class["handlers"])
        messages += handler["messages"].get<std::uint64_t>();
    }
  }
  EXPECT_EQ(messages, rt.metrics().total.messages) << seen;
}

TEST_P(observing, it_tells_which_classes_are_children_of_which) {
  runtime rt(observed());
  const auto parent = rt.spawn<observed_source>(rt.spawn<observed_sink>());
  spawn_options child;
  child.parent = parent;
  std::vector<ref<observed_sink>> children;
  for (int i = 0; i < 3; ++i) children.push_back(rt.spawn<observed_sink>(child));
  rt.run();
  const json seen = asker().ask("waits 0");
  ASSERT_EQ(seen["children"].size(), 1u) << seen;
  EXPECT_TRUE(seen["children"][0]["parent"].get<std::string>().ends_with("observed_source"));
  EXPECT_TRUE(seen["children"][0]["child"].get<std::string>().ends_with("observed_sink"));
  EXPECT_EQ(seen["children"][0]["count"], 3);
  const json alone = asker().ask("actor 0 " + std::to_string(parent.id()));
  EXPECT_FALSE(alone["actor"].contains("parent")) << alone;
  const json page = asker().ask("actors 0 " + std::to_string(children[0].id()) + " 1");
  EXPECT_EQ(page["actors"][0]["parent"], parent.id()) << page;
}

TEST_P(observing, bad_questions_get_an_answer_and_harm_nothing) {
  runtime rt(observed());
  struct ::stat is = {};
  ASSERT_EQ(::stat(asker::path_of_socket().c_str(), &is), 0);
  EXPECT_EQ(is.st_mode & 0777, 0600u);
  asker good, silent, loud;
  for (const char* const bad : {"",
                                "summary now",
                                "actors",
                                "actors 0",
                                "actors 0 0 0",
                                "foo",
                                "actors 0 0 1001",
                                "actors 1 0 10",
                                "longest 0 -1",
                                "longest x 1",
                                "actors 99999999999999999999999 0 1",
                                "waits",
                                "waits 1",
                                "waits 0 0",
                                "threads x",
                                "threads 2",
                                "actor 0",
                                "actor 0 x",
                                "actor 0 1 2",
                                "\xff\xfe\x01"}) {
    EXPECT_TRUE(good.ask(bad).contains("error")) << bad;
  }
  // several questions at once, and in parts
  good.say("summary\ndump\nsumm");
  EXPECT_TRUE(json::parse(good.hear()).contains("runtimes"));
  EXPECT_TRUE(json::parse(good.hear()).contains("dumps"));
  good.say("ary\n");
  EXPECT_TRUE(json::parse(good.hear()).contains("runtimes"));
  // one that never reads, and one whose question has no end
  for (int i = 0; i < 100; ++i) silent.say("summary\n");
  loud.say(std::string(3000, 'x'));
  loud.say(std::string(3000, 'x'));
  EXPECT_EQ(loud.hear(), "");
  EXPECT_TRUE(good.ask("summary").contains("runtimes"));
}

TEST_P(observing, the_socket_lives_as_long_as_the_last_runtime) {
  {
    runtime one(observed());
    {
      runtime other(observed());
      EXPECT_EQ(asker().ask("summary")["runtimes"].size(), 2u);
    }
    EXPECT_EQ(asker().ask("summary")["runtimes"].size(), 1u);
    runtime unseen(options());
    EXPECT_EQ(asker().ask("summary")["runtimes"].size(), 1u);
  }
  EXPECT_FALSE(std::filesystem::exists(asker::path_of_socket()));
  runtime again(observed());
  EXPECT_TRUE(asker().is_open());
}

TROUPE_TEST_EACH(observing, all_settings);

}  // namespace
}  // namespace troupe::test
