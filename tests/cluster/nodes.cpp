// Several nodes in one program: messages find their actors, and every failure has its type.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "given_up/sources.hpp"
#include "support/conformance.hpp"
#include "troupe/cluster/node.hpp"
#include "troupe/cluster/simulation.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using cluster::kind;
using cluster::node;

struct bad_item : std::runtime_error {
  using runtime_error::runtime_error;
};

struct Counter {
  explicit Counter(cluster::home its) : here(std::move(its)) {}
  int add(int n) { return count += n; }
  int get() const { return count; }
  void fail(std::string text) { throw std::invalid_argument(text); }
  void fail_known(std::string text) { throw bad_item(text); }
  task<int> slow(int ms) {
    co_await sleep_for(std::chrono::milliseconds(ms));
    co_return count;
  }
  std::int64_t remaining_ms() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(this_call::remaining()).count();
  }
  task<std::int64_t> remaining_in_task_ms() { co_return remaining_ms(); }
  std::string trace_id() const {
    const auto trace = this_call::trace();
    return trace ? trace->traceparent().substr(3, 32) : std::string();
  }
  std::string tracestate() const { return std::string(this_call::trace()->tracestate()); }
  task<std::string> trace_id_in_task() { co_return trace_id(); }
  void note(int n) { notes.push_back(n); }
  std::vector<int> its_notes() const { return notes; }
  task<int> ask_other(cluster::ref<Counter> other) {
    auto asked = other.ask<&Counter::add>(1);
    co_return co_await std::move(asked);
  }
  cluster::ref<Counter> other(std::string key) const { return here.get<Counter>(key); }
  // Through all these actors, the last one first, each of which waits for the next. Returns how
  // many it has reached.
  task<int> pass_through(std::vector<std::string> keys) {
    co_await sleep_for(std::chrono::milliseconds(2));
    if (keys.empty()) co_return 0;
    const auto next = here.get<Counter>(keys.back());
    keys.pop_back();
    auto passes = next.ask<&Counter::pass_through>(std::move(keys));
    co_return 1 + co_await std::move(passes);
  }

  cluster::home here;
  int count = 0;
  std::vector<int> notes;
};

auto counters() {
  return kind<Counter, &Counter::add, &Counter::get, &Counter::fail, &Counter::fail_known,
              &Counter::slow, &Counter::remaining_ms, &Counter::remaining_in_task_ms,
              &Counter::trace_id, &Counter::trace_id_in_task, &Counter::tracestate, &Counter::note,
              &Counter::its_notes, &Counter::ask_other, &Counter::other, &Counter::pass_through>();
}

cluster::options named(std::string name) {
  cluster::options chosen;
  chosen.name = std::move(name);
  chosen.lease = 2s;
  chosen.margin = 200ms;
  return chosen;
}

class cluster_nodes : public conformance {
 protected:
  // Runs test(simulation, nodes) as a task when the shards are shared by `count` nodes, and stops
  // the nodes.
  template <class Test>
  void with(int count, Test test) {
    runtime rt(options());
    const auto all = [&rt, count](Test runs) -> task<> {
      const cluster::simulation in;
      std::vector<node> nodes;
      for (int i = 0; i < count; ++i)
        nodes.emplace_back(rt, in, named("node " + std::to_string(i)), counters(),
                           cluster::exception<bad_item>());
      auto waits = until_shared(nodes);
      co_await std::move(waits);
      auto running = runs(rt, in, nodes);
      co_await std::move(running);
      for (const node& one : nodes) {
        co_await one.stop();
      }
    };
    future<> done = rt.spawn(all(test));
    rt.run();
    done.get();
  }

 public:
  static task<> until_shared(std::vector<node> nodes) {
    for (const node& one : nodes) {
      auto waits = one.ready();
      co_await std::move(waits);
    }
    const std::size_t least = 1'024 / nodes.size() * 9 / 10;
    const auto has_part = [&](const node& one) {
      return one.counts().shards >= least && one.counts().members == nodes.size();
    };
    while (!std::ranges::all_of(nodes, has_part)) co_await sleep_for(5ms);
  }
  // A key whose actor is on that node.
  static task<std::string> key_on(node asks, node where) {
    for (int i = 0;; ++i) {
      const std::string key = "key " + std::to_string(i);
      const auto before = where.counts().created;
      auto asked = asks.get<Counter>(key).ask<&Counter::get>();
      static_cast<void>(co_await std::move(asked));
      if (where.counts().created != before) co_return key;
    }
  }
};

using nodes_of = std::vector<node>&;

TEST_P(cluster_nodes, every_node_finds_the_same_actor) {
  with(3, [](runtime&, cluster::simulation, nodes_of nodes) -> task<> {
    for (int i = 0; i < 60; ++i) {
      const std::string key = std::to_string(i);
      for (int n = 0; n < 3; ++n) {
        const node& one = nodes[static_cast<std::size_t>(n)];
        EXPECT_EQ(co_await one.get<Counter>(key).ask<&Counter::add>(1), n + 1);
      }
    }
    std::uint64_t made = 0;
    for (const node& one : nodes) {
      EXPECT_GT(one.counts().created, 5u);
      EXPECT_GT(one.counts().sent, 10u);
      made += one.counts().created;
    }
    EXPECT_EQ(made, 60u);
  });
}

TEST_P(cluster_nodes, exceptions_travel) {
  with(2, [](runtime&, cluster::simulation, nodes_of nodes) -> task<> {
    auto finds = key_on(nodes[0], nodes[1]);
    const std::string key = co_await std::move(finds);
    for (const node& one : nodes) {
      const auto counter = one.get<Counter>(key);
      try {
        co_await counter.ask<&Counter::fail>("no item");
        ADD_FAILURE() << "no exception";
      } catch (const cluster::remote_exception& e) {
        EXPECT_EQ(e.type(), "std::invalid_argument");
        EXPECT_STREQ(e.what(), "no item");
      }
      try {
        co_await counter.ask<&Counter::fail_known>("bad");
        ADD_FAILURE() << "no exception";
      } catch (const bad_item& e) {
        EXPECT_STREQ(e.what(), "bad");
      }
    }
  });
}

struct Fewer {
  int add(long n) { return static_cast<int>(n); }
};
struct Unknown {
  int get() { return 1; }
};

TEST_P(cluster_nodes, what_the_other_side_does_not_know_fails_at_once_with_both_signatures) {
  runtime rt(options());
  const auto test = [&rt]() -> task<> {
    const cluster::simulation in;
    std::vector<node> nodes;
    nodes.emplace_back(rt, in, named("one"), counters(), kind<Unknown, &Unknown::get>());
    nodes.emplace_back(rt, in, named("two"), kind<Fewer, &Fewer::add>("Counter"));
    auto waits = until_shared(nodes);
    co_await std::move(waits);
    std::map<std::string, int> seen;
    const auto note = [&seen](const cluster::error& e) {
      EXPECT_EQ(e.kind(), cluster::failure::unknown_method) << e.what();
      EXPECT_FALSE(e.may_have_run());
      ++seen[e.what()];
    };
    for (int i = 0; i < 30; ++i) {
      const std::string key = std::to_string(i);
      try {
        co_await nodes[0].get<Counter>(key).ask<&Counter::add>(1);
      } catch (const cluster::error& e) {
        note(e);
      }
      try {
        co_await nodes[0].get<Counter>(key).ask<&Counter::get>();
      } catch (const cluster::error& e) {
        note(e);
      }
      try {
        co_await nodes[0].get<Unknown>(key).ask<&Unknown::get>();
      } catch (const cluster::error& e) {
        note(e);
      }
    }
    const std::set<std::string> expected{
        "troupe: cluster: here the method Counter::add is (i4)->i4, and on the other node (i8)->i4",
        "troupe: cluster: the other node's class Counter has no method get()->i4",
        "troupe: cluster: the other node has no class Unknown"};
    std::set<std::string> texts;
    for (const auto& [text, count] : seen) texts.insert(text);
    EXPECT_EQ(texts, expected);
    for (const node& one : nodes) {
      co_await one.stop();
    }
  };
  future<> done = rt.spawn(test());
  rt.run();
  done.get();
}

TEST_P(cluster_nodes, deadlines_and_traces_travel) {
  with(2, [](runtime&, cluster::simulation, nodes_of nodes) -> task<> {
    auto finds = key_on(nodes[0], nodes[1]);
    const std::string key = co_await std::move(finds);
    const auto counter = nodes[0].get<Counter>(key);
    const auto plain = [&] { return counter.ask<&Counter::remaining_ms>(); };
    const auto in_task = [&] { return counter.ask<&Counter::remaining_in_task_ms>(); };
    const auto check = [](std::int64_t left, std::int64_t most) {
      EXPECT_GT(left, most / 2);
      EXPECT_LE(left, most);
    };
    check(co_await with_deadline(5s, plain), 5'000);
    check(co_await with_deadline(5s, in_task), 5'000);
    check(co_await counter.ask<&Counter::remaining_ms>(), 10'000);
    const auto trace = trace_context::begin();
    const std::string id = trace.traceparent().substr(3, 32);
    const auto traced = [&] { return counter.ask<&Counter::trace_id>(); };
    const auto traced_task = [&] { return counter.ask<&Counter::trace_id_in_task>(); };
    EXPECT_EQ(co_await with_trace(trace, traced), id);
    EXPECT_EQ(co_await with_trace(trace, traced_task), id);
    const auto with_state = trace_context::parse(trace.traceparent(), "a=1,b=x y");
    const auto stated = [&] { return counter.ask<&Counter::tracestate>(); };
    EXPECT_EQ(co_await with_trace(*with_state, stated), "a=1,b=x y");
    EXPECT_EQ(co_await with_trace(*with_state, traced), id);
    const auto slow = [&] { return counter.ask<&Counter::slow>(60'000); };
    EXPECT_THROW(co_await with_deadline(30ms, slow), timed_out);
    EXPECT_EQ(co_await counter.ask<&Counter::add>(1), 1);
  });
}

TEST_P(cluster_nodes, messages_between_two_actors_arrive_in_order) {
  with(2, [](runtime&, cluster::simulation, nodes_of nodes) -> task<> {
    auto finds = key_on(nodes[0], nodes[1]);
    const std::string key = co_await std::move(finds);
    const auto counter = nodes[0].get<Counter>(key);
    std::vector<int> expected;
    std::vector<future<int>> asked;
    for (int i = 0; i < fewer(500); ++i) {
      counter.tell<&Counter::note>(i);
      expected.push_back(i);
      if (i % 10 == 0) asked.push_back(counter.ask<&Counter::add>(1));
    }
    EXPECT_EQ(co_await counter.ask<&Counter::its_notes>(), expected);
    for (std::size_t i = 0; i < asked.size(); ++i)
      EXPECT_EQ(co_await std::move(asked[i]), static_cast<int>(i) + 1);
  });
}

TEST_P(cluster_nodes, refs_travel_between_nodes) {
  with(3, [](runtime&, cluster::simulation, nodes_of nodes) -> task<> {
    for (int i = 0; i < 30; ++i) {
      const node& one = nodes[static_cast<std::size_t>(i % 3)];
      const auto asker = one.get<Counter>("asker " + std::to_string(i));
      const auto other = one.get<Counter>("other");
      EXPECT_EQ(co_await asker.ask<&Counter::ask_other>(other), i + 1);
      const auto got = co_await asker.ask<&Counter::other>("other");
      EXPECT_EQ(co_await got.ask<&Counter::get>(), i + 1);
    }
  });
}

TEST_P(cluster_nodes, each_node_has_one_of_its_own) {
  with(3, [](runtime&, cluster::simulation in, nodes_of nodes) -> task<> {
    int expected = 0;
    for (const node& from : nodes) {
      ++expected;
      for (const node& to : nodes)
        EXPECT_EQ(co_await from.on<Counter>(to.self()).ask<&Counter::add>(1), expected);
    }
    const auto gone = nodes[2].self();
    in.kill(nodes[2]);
    try {
      co_await nodes[0].on<Counter>(gone).ask<&Counter::add>(1);
      ADD_FAILURE() << "no exception";
    } catch (const cluster::error& e) {
      EXPECT_NE(e.kind(), cluster::failure::stopped);
    }
  });
}

TEST_P(cluster_nodes, members_come_and_go) {
  with(2, [](runtime& rt, cluster::simulation in, nodes_of nodes) -> task<> {
    const auto events = nodes[0].members();
    std::multiset<std::string> joined, left;
    const auto read = [&](std::size_t joins, std::size_t leaves) -> task<> {
      while (joined.size() < joins || left.size() < leaves) {
        const auto one = co_await events.receive();
        (one->joined ? joined : left).insert(one->node.name);
      }
    };
    auto two = read(2, 0);
    co_await std::move(two);
    {
      const node third(rt, in, named("third"), counters());
      auto three = read(3, 0);
      co_await std::move(three);
      co_await third.stop();
    }
    auto one_left = read(3, 1);
    co_await std::move(one_left);
    in.kill(nodes[1]);
    auto two_left = read(3, 2);
    co_await std::move(two_left);
    EXPECT_EQ(joined, (std::multiset<std::string>{"node 0", "node 1", "third"}));
    EXPECT_EQ(left, (std::multiset<std::string>{"third", "node 1"}));
  });
}

TEST_P(cluster_nodes, a_node_that_stops_hands_its_actors_over_and_no_ask_fails) {
  with(3, [](runtime& rt, cluster::simulation in, nodes_of nodes) -> task<> {
    std::atomic<bool> goes_on{true};
    std::atomic<int> answers{0};
    const auto asks = [&](node from) -> task<> {
      for (int i = 0; goes_on; ++i) {
        try {
          auto asked = from.get<Counter>(std::to_string(i % 50)).ask<&Counter::slow>(1);
          co_await std::move(asked);
          ++answers;
        } catch (const troupe::error& e) {
          ADD_FAILURE() << e.what();
        }
      }
    };
    std::vector<future<>> running;
    for (int i = 0; i < 2; ++i) running.push_back(spawn(asks(nodes[static_cast<std::size_t>(i)])));
    for (int round = 0; round < 2; ++round) {
      co_await nodes[2].stop();
      co_await sleep_for(200ms);
      nodes[2] = node(rt, in, named("again"), counters());
      auto waits = until_shared(nodes);
      co_await std::move(waits);
    }
    co_await sleep_for(200ms);
    goes_on = false;
    for (auto& one : running) co_await std::move(one);
    EXPECT_GT(answers.load(), 10);
  });
}

// Handlers that wait for others, over several nodes, while one after the other is stopped.
TEST_P(cluster_nodes, what_runs_on_a_node_that_stops_reaches_all_others_until_its_end) {
  with(3, [](runtime&, cluster::simulation, nodes_of nodes) -> task<> {
    const auto passes = [](node from, int first) -> task<> {
      std::vector<std::string> keys;
      for (int i = 0; i < 8; ++i) keys.push_back(std::to_string(first * 8 + i));
      try {
        auto all = from.get<Counter>(keys.front() + " begins").ask<&Counter::pass_through>(keys);
        EXPECT_EQ(co_await std::move(all), 8);
      } catch (const troupe::error& e) {
        ADD_FAILURE() << e.what();
      }
    };
    std::vector<future<>> running;
    const auto begin = [&](int first) {
      for (int i = 0; i < 40; ++i) running.push_back(spawn(passes(nodes[2], first + i)));
    };
    begin(0);
    for (std::size_t stopped = 0; stopped < 2; ++stopped) {
      co_await sleep_for(5ms);
      // One of those that each node has for itself takes part, too.
      auto own = nodes[2]
                     .on<Counter>(nodes[stopped].self())
                     .ask<&Counter::pass_through>(std::vector<std::string>{"a", "b", "c", "d"});
      begin(100 + 100 * static_cast<int>(stopped));
      co_await sleep_for(5ms);
      const auto begun = troupe::now();
      co_await nodes[stopped].stop();
      EXPECT_LT(troupe::now() - begun, 8s);  // nothing of it had to be given up
      EXPECT_EQ(co_await std::move(own), 4);
    }
    for (auto& one : running) co_await std::move(one);
  });
}

TEST_P(cluster_nodes, messages_that_wait_for_an_owner_keep_their_order) {
  with(2, [](runtime&, cluster::simulation in, nodes_of nodes) -> task<> {
    auto finds = key_on(nodes[0], nodes[1]);
    const std::string key = co_await std::move(finds);
    const auto counter = nodes[0].get<Counter>(key);
    in.kill(nodes[1]);
    std::vector<future<int>> asked;
    for (int i = 0; i < 300; ++i) {
      counter.tell<&Counter::note>(i);
      if (i % 10 == 0) asked.push_back(counter.ask<&Counter::add>(1));
      co_await sleep_for(10ms);
    }
    const auto notes = co_await counter.ask<&Counter::its_notes>();
    EXPECT_TRUE(std::ranges::is_sorted(notes));
    EXPECT_GT(notes.size(), 10u);
    EXPECT_EQ(notes.back(), 299);
    int last = 0;
    for (auto& one : asked) {
      try {
        const int now = co_await std::move(one);
        EXPECT_GT(now, last);
        last = now;
      } catch (const cluster::error& e) {
        EXPECT_EQ(e.kind(), cluster::failure::lost);
      }
    }
  });
}

// Tells it `count` notes, and asks after each `each` of them how many it has.
task<> expect_asks_between_tells(cluster::ref<Counter> counter, int count, int each) {
  std::vector<future<std::vector<int>>> asked;
  for (int i = 0; i < count; ++i) {
    counter.tell<&Counter::note>(i);
    if ((i + 1) % each == 0) asked.push_back(counter.ask<&Counter::its_notes>());
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const std::vector<int> notes = co_await std::move(asked[i]);
    EXPECT_EQ(notes.size(), (i + 1) * static_cast<std::size_t>(each));
    EXPECT_TRUE(std::ranges::is_sorted(notes));
  }
}

TEST_P(cluster_nodes, asks_find_the_place_between_tells_that_wait_for_room) {
  with(2, [](runtime&, cluster::simulation, nodes_of nodes) -> task<> {
    auto finds = key_on(nodes[0], nodes[1]);
    const std::string key = co_await std::move(finds);
    auto asks = expect_asks_between_tells(nodes[0].get<Counter>(key), 9'000, 750);
    co_await std::move(asks);
  });
}

TEST_P(cluster_nodes, asks_find_the_place_between_tells_that_wait_for_this_node) {
  runtime rt(options());
  const auto test = [&rt]() -> task<> {
    const cluster::simulation in;
    in.set_database_away(true);
    const node one(rt, in, named("one"), counters());
    auto asks = expect_asks_between_tells(one.get<Counter>("a"), 60, 3);
    future<> asked = spawn(std::move(asks));
    co_await sleep_for(20ms);
    EXPECT_EQ(one.counts().created, 0u);
    in.set_database_away(false);
    co_await std::move(asked);
    co_await one.stop();
  };
  future<> done = rt.spawn(test());
  rt.run();
  done.get();
}

TEST_P(cluster_nodes, tells_that_wait_for_too_long_are_dropped_and_counted) {
  runtime rt(options());
  const auto test = [&rt]() -> task<> {
    const cluster::simulation in;
    in.set_database_away(true);
    auto chosen = named("one");
    chosen.waiting_max = 10;
    chosen.ask_timeout = 100ms;
    const node one(rt, in, chosen, counters());
    const auto counter = one.get<Counter>("a");
    for (int i = 0; i < 10; ++i) counter.tell<&Counter::note>(i);
    EXPECT_THROW(counter.tell<&Counter::note>(10), cluster::error);
    while (one.counts().failed != 10) co_await sleep_for(5ms);
    EXPECT_EQ(one.counts().waiting, 0u);
    in.set_database_away(false);
    while (one.counts().shards != 1'024) co_await sleep_for(5ms);
    counter.tell<&Counter::note>(11);
    const auto notes = co_await counter.ask<&Counter::its_notes>();
    EXPECT_EQ(notes.size(), 1u);
    EXPECT_EQ(notes.front(), 11);
    co_await one.stop();
  };
  future<> done = rt.spawn(test());
  rt.run();
  done.get();
}

TEST_P(cluster_nodes, what_a_killed_node_had_to_answer_is_lost_and_others_take_over) {
  with(2, [](runtime&, cluster::simulation in, nodes_of nodes) -> task<> {
    auto finds = key_on(nodes[0], nodes[1]);
    const std::string key = co_await std::move(finds);
    const auto counter = nodes[0].get<Counter>(key);
    EXPECT_EQ(co_await counter.ask<&Counter::add>(5), 5);
    auto asked = counter.ask<&Counter::slow>(60'000);
    co_await sleep_for(10ms);
    in.kill(nodes[1]);
    const auto begun = troupe::now();
    try {
      co_await std::move(asked);
      ADD_FAILURE() << "no exception";
    } catch (const cluster::error& e) {
      EXPECT_EQ(e.kind(), cluster::failure::lost);
      EXPECT_TRUE(e.may_have_run());
    }
    // A fresh one, on the other node.
    EXPECT_EQ(co_await counter.ask<&Counter::add>(1), 1);
    if (GetParam().policy == policy::simulated) {
      EXPECT_LE(troupe::now() - begun, 2s + 1s);
    }
  });
}

TEST_P(cluster_nodes, a_node_that_is_cut_off_from_the_database_stops_to_answer) {
  with(2, [](runtime&, cluster::simulation in, nodes_of nodes) -> task<> {
    auto finds = key_on(nodes[0], nodes[1]);
    const std::string key = co_await std::move(finds);
    const auto there = nodes[1].get<Counter>(key);
    EXPECT_EQ(co_await there.ask<&Counter::add>(5), 5);
    in.cut_off_from_database(nodes[1], true);
    while (nodes[1].counts().shards != 0) co_await sleep_for(5ms);
    // It is made anew by the other one. The one that is cut off does not know where it is now.
    EXPECT_EQ(co_await nodes[0].get<Counter>(key).ask<&Counter::add>(1), 1);
    const auto asks = [&] { return there.ask<&Counter::add>(1); };
    EXPECT_THROW(co_await with_deadline(100ms, asks), timed_out);
    in.cut_off_from_database(nodes[1], false);
    auto waits = until_shared(nodes);
    co_await std::move(waits);
  });
}

TEST_P(cluster_nodes, what_is_published_reaches_all_who_subscribe) {
  with(3, [](runtime&, cluster::simulation, nodes_of nodes) -> task<> {
    std::vector<cluster::topic_stream<std::string>> all;
    for (int i = 0; i < 4; ++i) {
      auto subscribes = nodes[static_cast<std::size_t>(i) % 3].subscribe<std::string>("news.eu");
      all.push_back(co_await std::move(subscribes));
    }
    auto wrong_type = nodes[0].subscribe<int>("news.eu");
    auto numbers = co_await std::move(wrong_type);
    for (int i = 0; i < 10; ++i) {
      auto publishes = nodes[1].publish("news.eu", std::to_string(i));
      co_await std::move(publishes);
    }
    for (auto& one : all) {
      for (int i = 0; i < 10; ++i) {
        const auto got = co_await one.next();
        EXPECT_EQ(got, std::to_string(i));
      }
    }
    while (numbers.refused() < 10) co_await sleep_for(1ms);
    for (const std::string name : {"news.*", "", ".news", "a b"}) {
      auto publishes = nodes[0].publish(name, 1);
      EXPECT_THROW(co_await std::move(publishes), usage_error);
    }
  });
}

// docs/protocols/given_up_waits.md
TEST_P(cluster_nodes, a_wait_for_a_topic_that_is_given_up_loses_no_value) {
  with(2, [](runtime&, cluster::simulation, nodes_of nodes) -> task<> {
    constexpr int values = 1000;
    for (const given_up_by way : ways_to_give_up) {
      const std::string topic = "numbers" + std::to_string(static_cast<int>(way));
      auto subscribes = nodes[0].subscribe<std::string>(topic);
      auto numbers = co_await std::move(subscribes);
      const auto next = [&]() -> task<std::string> {
        const auto came = co_await numbers.next();
        co_return *came;
      };
      texts_source from(values, next);
      const auto publishes = [](node by, std::string name) -> task<> {
        for (int i = 0; i < values; ++i) {
          auto publishing = by.publish(name, std::to_string(i));
          co_await std::move(publishing);
        }
      };
      future<> running = spawn(publishes(nodes[1], topic));
      co_await check_drained(from, values, way);
      co_await std::move(running);
    }
  });
}

TEST_P(cluster_nodes, of_a_group_one_gets_each_value) {
  with(3, [](runtime&, cluster::simulation, nodes_of nodes) -> task<> {
    std::array<std::atomic<int>, 50> seen{};
    std::atomic<int> all{0};
    const auto reads = [&](cluster::topic_stream<int> from) -> task<> {
      while (const auto one = co_await from.next()) {
        ++seen[static_cast<std::size_t>(*one)];
        ++all;
        co_await sleep_for(100us);
      }
    };
    cluster::topic_options workers;
    workers.group = "workers";
    std::vector<future<>> running;
    for (int i = 0; i < 4; ++i) {
      auto subscribes = nodes[static_cast<std::size_t>(i) % 3].subscribe<int>("orders", workers);
      running.push_back(spawn(reads(co_await std::move(subscribes))));
    }
    for (int i = 0; i < 50; ++i) {
      auto publishes = nodes[2].publish("orders", i);
      co_await std::move(publishes);
    }
    while (all < 50) co_await sleep_for(1ms);
    for (const auto& count : seen) EXPECT_EQ(count.load(), 1);
    for (const node& one : nodes) {
      co_await one.stop();
    }
    for (auto& one : running) co_await std::move(one);
  });
}

TEST_P(cluster_nodes, messages_that_cannot_be_sent_are_bounded) {
  runtime rt(options());
  const auto test = [&rt]() -> task<> {
    const cluster::simulation in;
    in.set_database_away(true);
    auto chosen = named("one");
    chosen.waiting_max = 10;
    chosen.ask_timeout = 100ms;
    const node one(rt, in, chosen, counters());
    std::vector<future<int>> asked;
    for (int i = 0; i < 20; ++i)
      asked.push_back(one.get<Counter>(std::to_string(i)).ask<&Counter::get>());
    EXPECT_THROW(one.get<Counter>("a").tell<&Counter::note>(1), cluster::error);
    std::map<cluster::failure, int> seen;
    for (auto& each : asked) {
      try {
        co_await std::move(each);
      } catch (const cluster::error& e) {
        ++seen[e.kind()];
      }
    }
    EXPECT_EQ(seen[cluster::failure::unreachable], 10);
    EXPECT_EQ(seen[cluster::failure::full], 10);
    EXPECT_THROW(co_await one.ready(), error);
    in.set_database_away(false);
    while (one.counts().shards != 1'024) co_await sleep_for(5ms);
    EXPECT_EQ(co_await one.get<Counter>("a").ask<&Counter::add>(1), 1);
    co_await one.stop();
  };
  future<> done = rt.spawn(test());
  rt.run();
  done.get();
}

// Leases take their time with real clocks.
std::vector<setting> some_settings() {
  auto all = each_policy();
  if (!slow) {
    all.push_back({policy::simulated, 1, 2});
    all.push_back({policy::simulated, 1, 3});
  }
  return all;
}
TROUPE_TEST_EACH(cluster_nodes, some_settings);

}  // namespace
}  // namespace troupe::test
