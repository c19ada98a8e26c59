// What another process sees of an observed program: exact counts by class and handler, all actors
// page by page, and the longest mailboxes.
#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "actor/scan/actor_scan.hpp"
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

TEST_P(observed_runtimes, counts_are_exact_and_add_up_to_the_metrics) {
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

TEST_P(observed_runtimes, timers_are_counted_by_source) {
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
  rt.spawn(
      [ended = end.get_future()]() mutable -> task<> { co_await std::move(ended).timeout(1h); });
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

TEST_P(observed_runtimes, io_is_counted_by_operation) {
  runtime rt(observed());
  const std::string sent(100, 'x');
  promise<endpoint> listens;
  future<endpoint> where = listens.get_future();
  rt.spawn([&]() -> task<> {
    auto listener = tcp_listener::listen(endpoint::loopback(0));
    listens.set_value(listener.local());
    tcp_stream stream = co_await listener.accept();
    std::array<char, 100> bytes;
    for (int i = 0; i < 20; ++i) co_await stream.read_exact(bytes);
    co_await stream.write_all(sent);
  });
  rt.spawn([&]() -> task<> {
    const endpoint at = co_await std::move(where);
    tcp_stream stream = co_await tcp_stream::connect(at);
    for (int i = 0; i < 20; ++i) co_await stream.write_all(sent);
    std::array<char, 100> bytes;
    co_await stream.read_exact(bytes);
    EXPECT_EQ(co_await stream.read(bytes), 0u) << "the end";
  });
  rt.run();
  const json own = asker().ask("summary")["runtimes"][0];
  const json& reads = named(own["io"], "operation", "read");
  const json& writes = named(own["io"], "operation", "write");
  EXPECT_EQ(writes["done"], 21) << own["io"];
  EXPECT_EQ(writes["bytes"], 2'100) << own["io"];
  EXPECT_EQ(reads["done"], 22) << own["io"];
  EXPECT_EQ(reads["bytes"], 2'100) << own["io"];
  EXPECT_EQ(named(own["io"], "operation", "accept")["done"], 1) << own["io"];
  EXPECT_EQ(named(own["io"], "operation", "connect")["done"], 1) << own["io"];
  EXPECT_EQ(named(own["io"], "operation", "connect")["errors"], 0) << own["io"];
  EXPECT_GT(reads["samples"], 0) << own["io"];
}

int tenfold(int n) { return n * 10; }

TEST_P(observed_runtimes, lazies_are_counted_by_the_type_of_their_function) {
  runtime rt(observed());
  int sum = 0;
  rt.spawn([&]() -> task<> {
    std::vector<lazy<int>> all;
    for (int i = 0; i < 300; ++i) all.push_back(lazy([i] { return tenfold(i); }));
    for (auto& one : all) sum += co_await one;
  });
  rt.run();
  EXPECT_EQ(sum, 448'500);
  const json own = asker().ask("summary")["runtimes"][0];
  ASSERT_EQ(own["lazies"].size(), 1u) << own["lazies"];
  const json& its = own["lazies"][0];
  EXPECT_EQ(its["computed"], 300) << its;
  EXPECT_EQ(its["computed"], own["total"]["lazies"]) << own["total"];
  EXPECT_LE(its["stolen"], 300) << its;
  EXPECT_GT(its["samples"], 0) << its;
}

TEST_P(observed_runtimes, all_actors_are_listed_page_by_page) {
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

json listed(asker& here, std::uint64_t id) {
  const json page = here.ask("actors 0 " + std::to_string(id) + " 1");
  EXPECT_EQ(page["actors"][0]["id"], id) << page;
  return page["actors"][0];
}

TEST_P(observed_runtimes, an_actor_has_the_name_that_it_was_given_until_it_ends) {
  runtime rt(observed());
  const auto none = rt.spawn<observed_sink>();
  const std::string number = std::to_string(4);
  auto desk = rt.spawn<observed_sink>({.name = "cash desk " + number});
  const auto pinned_desk = rt.spawn<observed_sink>(pinned("desk", {.name = "a thread's own"}));
  const auto unruly = rt.spawn<observed_sink>({.name = "\x1b[31m\n\"\xff\xc2\x9b"});
  const auto longest = rt.spawn<observed_sink>({.name = std::string(62, 'x') + "\u00e4"});
  auto first = rt.activate({.name = "given"}, std::make_unique<observed_sink>());
  rt.run();
  asker here;
  EXPECT_FALSE(listed(here, none.id()).contains("name"));
  EXPECT_EQ(listed(here, desk.id())["name"], "cash desk 4");
  EXPECT_EQ(listed(here, pinned_desk.id())["name"], "a thread's own");
  EXPECT_EQ(listed(here, unruly.id())["name"], " [31m \"\ufffd  ");
  EXPECT_EQ(listed(here, longest.id())["name"], std::string(62, 'x'));
  EXPECT_EQ(listed(here, first.id())["name"], "given");
  EXPECT_EQ(here.ask("actor 0 " + std::to_string(desk.id()))["actor"]["name"], "cash desk 4");
  // the next actor of the same slot does not inherit it
  const std::uint64_t id = desk.id();
  desk = {};
  rt.run();
  spawn_options again;
  again.turn = {10, 1ms};
  std::vector<ref<observed_sink>> others;
  for (int i = 0; i < 2'000; ++i) others.push_back(rt.spawn<observed_sink>(again));
  rt.run();
  const json page = here.ask("actors 0 " + std::to_string(id) + " 1");
  EXPECT_NE(page["actors"][0].value("name", ""), "cash desk 4") << page;
}

// The object lies outside of the actor's slot: alone, and in a turn of many messages.
TEST_P(observed_runtimes, an_object_that_was_given_to_activate_is_the_one_that_handles) {
  runtime rt(observed());
  auto object = std::make_unique<observed_sink>();
  const observed_sink* const lies_at = object.get();
  const auto given = rt.activate(std::move(object));
  const auto options =
      rt.activate({.mailbox = {2'000, when_full::fail}}, std::make_unique<observed_sink>());
  for (int i = 0; i < 1'000; ++i) {
    given.tell<&observed_sink::put>(1);
    options.tell<&observed_sink::put>(2);
  }
  auto sum = given.ask<&observed_sink::get>(), others = options.ask<&observed_sink::get>();
  auto is_at = given.ask([lies_at](const observed_sink& self) { return &self == lies_at; });
  rt.run();
  EXPECT_TRUE(is_at.get());
  EXPECT_EQ(lies_at->sum, 1'000);
  EXPECT_EQ(sum.get(), 1'000);
  EXPECT_EQ(others.get(), 2'000);
}

TEST_P(observed_runtimes, an_actor_has_the_handler_that_began_last) {
  struct large {
    int put(int n) { return n; }
    std::array<char, 20'000> bytes{};
  };
  struct alignas(512) aligned {
    int put(int n) { return n; }
  };
  struct asleep {
    task<> rest() { co_await sleep_for(1h); }
  };
  runtime rt(observed());
  const auto fresh = rt.spawn<observed_sink>(), plain = rt.spawn<observed_sink>();
  const auto with_options = rt.spawn<observed_sink>({.mailbox = {100, when_full::fail}});
  const auto of_large = rt.spawn<large>();
  const auto of_aligned = rt.spawn<aligned>();
  const auto given = rt.activate(std::make_unique<observed_sink>());
  const auto waits = rt.spawn<asleep>();
  for (const auto& one : {plain, with_options, given}) {
    one.tell<&observed_sink::put>(1);
    one.tell<&observed_sink::get>();
  }
  of_large.tell<&large::put>(1);
  of_aligned.tell<&aligned::put>(1);
  std::vector<json> seen;
  rt.spawn([&]() -> task<> {
    co_await plain.ask<&observed_sink::get_later>();
    waits.tell<&asleep::rest>();
    co_await sleep_for(1ms);
    asker here;
    for (const std::uint64_t id : {fresh.id(), plain.id(), with_options.id(), given.id(),
                                   of_large.id(), of_aligned.id(), waits.id()})
      seen.push_back(listed(here, id));
    rt.stop(stop_mode::discard);
  });
  rt.run();
  ASSERT_EQ(seen.size(), 7u);
  const auto last = [&](std::size_t i) { return seen[i].value("last_handler", std::string()); };
  EXPECT_EQ(last(0), "");
  EXPECT_TRUE(last(1).ends_with("observed_sink::get_later")) << seen[1];
  EXPECT_TRUE(last(2).ends_with("observed_sink::get")) << seen[2];
  EXPECT_TRUE(last(3).ends_with("observed_sink::get")) << seen[3];
  EXPECT_TRUE(last(4).ends_with("large::put")) << seen[4];
  EXPECT_TRUE(last(5).ends_with("aligned::put")) << seen[5];
  EXPECT_TRUE(last(6).ends_with("asleep::rest")) << seen[6];
}

TEST_P(observed_runtimes, an_actor_that_has_ended_is_not_listed) {
  runtime rt(observed());
  const auto ends = rt.spawn<observed_sink>(), stays = rt.spawn<observed_sink>();
  ends.stop();
  rt.run();
  asker here;
  EXPECT_TRUE(here.ask("actor 0 " + std::to_string(ends.id()))["actor"].is_null());
  EXPECT_EQ(here.ask("actor 0 " + std::to_string(stays.id()))["actor"]["id"], stays.id());
}

TEST_P(observed_runtimes, a_page_costs_few_system_calls_also_for_children_of_one_parent) {
  runtime rt(observed());
  const auto parent = rt.spawn<observed_sink>();
  spawn_options child;
  child.parent = parent;
  std::vector<ref<observed_sink>> children;
  for (int i = 0; i < 3'000; ++i) children.push_back(rt.spawn<observed_sink>(child));
  rt.run();
  asker here;
  const std::uint64_t before = actor::count_copies();
  const json page = here.ask("actors 0 " + std::to_string(children[0].id()) + " 1000");
  const std::uint64_t copies = actor::count_copies() - before;
  ASSERT_EQ(page["actors"].size(), 1'000u);
  for (const json& one : page["actors"]) EXPECT_EQ(one["parent"], parent.id()) << one;
  EXPECT_LE(copies, 1'000u + 50u);
}

TEST_P(observed_runtimes, the_longest_mailbox_is_found) {
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

TEST_P(observed_runtimes, what_calls_wait_for_is_told_by_kind_and_by_actor) {
  if (GetParam().policy == policy::simulated)
    GTEST_SKIP() << "needs threads: another thread looks meanwhile";
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
    // and so does the list of actors
    const json page = asks.ask("actors 0 " + std::to_string(one.id()) + " 1");
    ASSERT_EQ(page["actors"].size(), 1u) << page;
    const json& waits_for = page["actors"][0]["waits"];
    EXPECT_TRUE(waits_for["for"].get<std::string>().starts_with("the answer of ")) << page;
    EXPECT_TRUE(waits_for["at"].get<std::string>().starts_with("observing.cpp:")) << page;
    EXPECT_EQ(waits_for["asked"], other.id()) << page;
    EXPECT_GT(waits_for.value("waits_ns", std::int64_t{0}), 0) << page;
    other.tell<&asking_pair::open>();
  });
  rt.run();
  looks.join();
}

TEST_P(observed_runtimes, the_time_of_each_thread_adds_up_to_the_handlers) {
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

struct spanning {
  void works() {
    const trace_span outer("outer");
    for (int i = 0; i < 3; ++i) const trace_span inner("inner");
  }
  void rests() {}
  task<> waits() {
    { const trace_span first("first"); }
    co_await yield();
    const trace_span second("second");
  }
};

// For the spans of all threads, by handler and name.
std::map<std::string, std::uint64_t> ns_of_spans(const json& seen) {
  std::map<std::string, std::uint64_t> ns;
  for (const json& thread : seen["threads"]) {
    for (const json& of_class : thread["classes"]) {
      for (const json& handler : of_class["handlers"]) {
        if (!handler.contains("spans")) continue;
        const std::string name = handler["handler"];
        for (const json& span : handler["spans"])
          ns[name.substr(name.rfind(':') + 1) + " " + span["span"].get<std::string>()] +=
              span["busy_ns"].get<std::uint64_t>();
      }
    }
  }
  return ns;
}

TEST_P(observed_runtimes, the_time_of_a_handler_goes_on_to_its_spans) {
  runtime rt(observed());
  auto actor = rt.spawn<spanning>();
  rt.post([] { const trace_span alone("of no handler"); });
  for (int i = 0; i < 100; ++i) {
    actor.tell<&spanning::works>();
    actor.tell<&spanning::rests>();
    actor.tell<&spanning::waits>();
  }
  rt.run();
  const json seen = asker().ask("threads 0");
  const auto ns = ns_of_spans(seen);
  ASSERT_EQ(ns.size(), 3u) << seen;
  EXPECT_GT(ns.at("works outer"), 0u);
  EXPECT_TRUE(ns.contains("waits first"));
  EXPECT_TRUE(ns.contains("waits second"));
}

struct branching {
  std::int64_t worked_ns = 0;
  void work() {
    const auto began = std::chrono::steady_clock::now();
    for (volatile int n = 0; n < 20'000;) n = n + 1;
    worked_ns += std::chrono::nanoseconds(std::chrono::steady_clock::now() - began).count();
  }
  task<> part() {
    work();
    co_await yield();
    work();
  }
  task<> parts() {
    co_await part();
    co_await with_span("inner", part());
    co_await when_all(part(), with_span("deeper", part()));
  }
  task<> nested() { co_await with_span("outer", parts()); }
  task<> aside() { co_await when_all(with_span("left", part()), with_span("right", part())); }
  std::int64_t take_ns() { return std::exchange(worked_ns, 0); }
};

// What a branch does after it has waited counts, too, and in branches within it.
TEST_P(observed_runtimes, the_time_of_a_handler_goes_on_to_the_branches_that_have_names) {
  runtime rt(observed());
  auto actor = rt.spawn<branching>();
  for (int i = 0; i < 20; ++i) actor.tell<&branching::nested>();
  auto nested_ns = actor.ask<&branching::take_ns>();
  rt.run();
  for (int i = 0; i < 20; ++i) actor.tell<&branching::aside>();
  auto aside_ns = actor.ask<&branching::take_ns>();
  rt.run();
  const json seen = asker().ask("threads 0");
  const auto ns = ns_of_spans(seen);
  ASSERT_EQ(ns.size(), 3u) << seen;
  const auto has_most_of = [](std::uint64_t found, std::int64_t worked) {
    return static_cast<double>(found) > 0.9 * static_cast<double>(worked);
  };
  EXPECT_TRUE(has_most_of(ns.at("nested outer"), nested_ns.get())) << seen;
  EXPECT_TRUE(has_most_of(ns.at("aside left") + ns.at("aside right"), aside_ns.get())) << seen;
  EXPECT_GT(ns.at("aside left"), 0u);
  EXPECT_GT(ns.at("aside right"), 0u);
}

TEST_P(observed_runtimes, it_tells_which_classes_are_children_of_which) {
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

TEST_P(observed_runtimes, bad_questions_get_an_answer_and_harm_nothing) {
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

TEST_P(observed_runtimes, the_socket_lives_as_long_as_the_last_runtime) {
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

TROUPE_TEST_EACH(observed_runtimes, all_settings);

}  // namespace
}  // namespace troupe::test
