// A node that runs alone: the same program as on many machines.
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/conformance.hpp"
#include "troupe/cluster/node.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using cluster::kind;
using cluster::node;

class cluster_alone : public conformance {
 protected:
  // Runs test(node) as a task, and stops the node.
  template <class Test, class... Settings>
  void with(cluster::options chosen, Test test, Settings... settings) {
    runtime rt(options());
    const auto all = [](node here, Test runs) -> task<> {
      auto waits = here.ready();
      co_await std::move(waits);
      auto running = runs(here);
      co_await std::move(running);
      co_await here.stop();
    };
    future<> done = rt.spawn(all(node(rt, std::move(chosen), std::move(settings)...), test));
    rt.run();
    done.get();
  }
};

struct bad_item : std::runtime_error {
  using runtime_error::runtime_error;
};

struct Cart {
  explicit Cart(std::string its_key) : key(std::move(its_key)) {}
  std::size_t add(std::string item) {
    if (item.empty()) throw std::invalid_argument("no item");
    if (item == "bad") throw bad_item("a bad item");
    items.push_back(std::move(item));
    return items.size();
  }
  task<std::vector<std::string>> slowly() {
    co_await sleep_for(1ms);
    co_return items;
  }
  task<> never() { co_await sleep_for(1h); }
  std::string its_key() const { return key; }
  void note(int n) { items.push_back(std::to_string(n)); }

  std::string key;
  std::vector<std::string> items;
};

auto carts() {
  return kind<Cart, &Cart::add, &Cart::slowly, &Cart::never, &Cart::its_key, &Cart::note>();
}

TEST_P(cluster_alone, an_actor_is_made_by_its_first_message_and_stays) {
  with(
      {},
      [](node here) -> task<> {
        const auto alice = here.get<Cart>("alice");
        EXPECT_EQ(co_await alice.ask<&Cart::add>("pen"), 1u);
        EXPECT_EQ(co_await here.get<Cart>("alice").ask<&Cart::add>("ink"), 2u);
        EXPECT_EQ(co_await here.get<Cart>("bob").ask<&Cart::add>("pen"), 1u);
        const auto items = co_await alice.ask<&Cart::slowly>();
        EXPECT_EQ(items, (std::vector<std::string>{"pen", "ink"}));
        EXPECT_EQ(co_await alice.ask<&Cart::its_key>(), "alice");
        const auto now = here.counts();
        EXPECT_EQ(now.actors, 2u);
        EXPECT_EQ(now.shards, 1'024u);
        EXPECT_EQ(now.members, 1u);
        EXPECT_EQ(now.sent, 0u);
      },
      carts());
}

TEST_P(cluster_alone, messages_arrive_in_the_order_in_which_they_were_sent) {
  with(
      {},
      [](node here) -> task<> {
        const auto alice = here.get<Cart>("alice");
        std::vector<std::string> expected;
        for (int i = 0; i < 1'000; ++i) {
          alice.tell<&Cart::note>(i);
          expected.push_back(std::to_string(i));
        }
        const auto items = co_await alice.ask<&Cart::slowly>();
        EXPECT_EQ(items, expected);
      },
      carts());
}

TEST_P(cluster_alone, exceptions_are_the_same_as_from_another_node) {
  with(
      {},
      [](node here) -> task<> {
        const auto alice = here.get<Cart>("alice");
        try {
          co_await alice.ask<&Cart::add>("");
          ADD_FAILURE() << "no exception";
        } catch (const cluster::remote_exception& e) {
          EXPECT_EQ(e.type(), "std::invalid_argument");
          EXPECT_STREQ(e.what(), "no item");
        }
        try {
          co_await alice.ask<&Cart::add>("bad");
          ADD_FAILURE() << "no exception";
        } catch (const bad_item& e) {
          EXPECT_STREQ(e.what(), "a bad item");
        }
        EXPECT_EQ(co_await alice.ask<&Cart::add>("pen"), 1u);
      },
      carts(), cluster::exception<bad_item>());
}

TEST_P(cluster_alone, a_deadline_ends_an_ask) {
  with(
      {},
      [](node here) -> task<> {
        const auto asks = [&] { return here.get<Cart>("alice").ask<&Cart::never>(); };
        EXPECT_THROW(co_await with_deadline(10ms, asks), timed_out);
        EXPECT_EQ(co_await here.get<Cart>("alice").ask<&Cart::add>("pen"), 1u);
      },
      carts());
}

TEST_P(cluster_alone, an_idle_actor_is_put_away) {
  cluster::options chosen;
  chosen.idle_max = 20ms;
  with(
      chosen,
      [](node here) -> task<> {
        EXPECT_EQ(co_await here.get<Cart>("alice").ask<&Cart::add>("pen"), 1u);
        while (here.counts().actors != 0) co_await sleep_for(5ms);
        EXPECT_EQ(co_await here.get<Cart>("alice").ask<&Cart::add>("pen"), 1u);
        EXPECT_EQ(here.counts().created, 2u);
        EXPECT_EQ(here.counts().unloaded, 1u);
      },
      carts());
}

TEST_P(cluster_alone, of_too_many_those_used_least_recently_go) {
  cluster::options chosen;
  chosen.actors_max = 10;
  chosen.idle_max = 40ms;
  with(
      chosen,
      [](node here) -> task<> {
        for (int i = 0; i < 30; ++i) {
          co_await here.get<Cart>(std::to_string(i)).ask<&Cart::add>("pen");
          co_await sleep_for(100us);
        }
        while (here.counts().unloaded < 20) co_await sleep_for(1ms);
        EXPECT_LE(here.counts().actors, 10u);
      },
      carts());
}

struct Tree {
  explicit Tree(cluster::home its) : here(std::move(its)) {
    if (here.key() == "rotten") throw std::runtime_error("rotten");
    // It comes behind the message for which it is made.
    here.get<Tree>(here.key()).tell<&Tree::grow>(1);
  }
  void grow(int n) { height += n; }
  int its_height() const { return height; }
  task<int> sum(cluster::ref<Tree> other, std::vector<cluster::ref<Tree>> more) {
    int all = height;
    auto asked = other.ask<&Tree::its_height>();
    all += co_await std::move(asked);
    for (const auto& one : more) {
      auto next = one.ask<&Tree::its_height>();
      all += co_await std::move(next);
    }
    co_return all;
  }
  cluster::ref<Tree> next(std::string key) { return here.get<Tree>(key); }

  cluster::home here;
  int height = 0;
};
auto trees() { return kind<Tree, &Tree::grow, &Tree::its_height, &Tree::sum, &Tree::next>(); }

TEST_P(cluster_alone, a_constructor_may_send_to_its_own_actor) {
  with(
      {},
      [](node here) -> task<> {
        std::vector<future<int>> asked;
        for (int i = 0; i < 100; ++i)
          asked.push_back(here.get<Tree>(std::to_string(i % 10)).ask<&Tree::its_height>());
        for (std::size_t i = 0; i < 100; ++i)
          EXPECT_EQ(co_await std::move(asked[i]), i < 10 ? 0 : 1);
      },
      trees());
}

TEST_P(cluster_alone, a_constructor_that_throws_fails_the_message_and_the_next_one_tries_again) {
  with(
      {},
      [](node here) -> task<> {
        for (int i = 0; i < 3; ++i)
          EXPECT_THROW(co_await here.get<Tree>("rotten").ask<&Tree::its_height>(),
                       cluster::remote_exception);
        EXPECT_EQ(here.counts().actors, 0u);
      },
      trees());
}

TEST_P(cluster_alone, refs_travel_in_messages) {
  with(
      {},
      [](node here) -> task<> {
        const auto oak = here.get<Tree>("oak");
        for (const char* name : {"oak", "elm", "ash", "fir", "yew"})
          here.get<Tree>(name).tell<&Tree::grow>(0);
        std::vector<cluster::ref<Tree>> more{here.get<Tree>("ash"), here.get<Tree>("fir")};
        EXPECT_EQ(co_await oak.ask<&Tree::sum>(here.get<Tree>("elm"), std::move(more)), 4);
        const auto next = co_await oak.ask<&Tree::next>("yew");
        EXPECT_EQ(next, here.get<Tree>("yew"));
        EXPECT_EQ(co_await next.ask<&Tree::its_height>(), 1);
      },
      trees());
}

TEST_P(cluster_alone, what_a_node_was_not_given_is_refused) {
  with(
      {},
      [](node here) -> task<> {
        EXPECT_THROW(static_cast<void>(here.get<Tree>("oak")), usage_error);
        EXPECT_THROW(static_cast<void>(here.get<Cart>("a").ask<&Cart::its_key>()), usage_error);
        co_return;
      },
      kind<Cart, &Cart::add>());
}

TEST_P(cluster_alone, a_stopped_node_says_so) {
  with(
      {},
      [](node here) -> task<> {
        const auto alice = here.get<Cart>("alice");
        EXPECT_EQ(co_await alice.ask<&Cart::add>("pen"), 1u);
        co_await here.stop();
        try {
          co_await alice.ask<&Cart::add>("pen");
          ADD_FAILURE() << "no exception";
        } catch (const cluster::error& e) {
          EXPECT_EQ(e.kind(), cluster::failure::stopped);
        }
        EXPECT_THROW(alice.tell<&Cart::note>(1), cluster::error);
      },
      carts());
}

TEST_P(cluster_alone, stop_waits_for_handlers_that_run) {
  struct Slow {
    task<int> work() {
      co_await sleep_for(20ms);
      co_return 7;
    }
  };
  with(
      {},
      [](node here) -> task<> {
        auto asked = here.get<Slow>("a").ask<&Slow::work>();
        co_await here.stop();
        EXPECT_TRUE(asked.ready());
        EXPECT_EQ(co_await std::move(asked), 7);
      },
      kind<Slow, &Slow::work>("Slow"));
}

TEST_P(cluster_alone, topics_are_heard_on_the_same_node) {
  with(
      {},
      [](node here) -> task<> {
        auto subscribes = here.subscribe<std::vector<int>>("numbers");
        auto numbers = co_await std::move(subscribes);
        for (int i = 0; i < 5; ++i) {
          auto publishes = here.publish("numbers", std::vector<int>{i, i});
          co_await std::move(publishes);
        }
        for (int i = 0; i < 5; ++i) {
          const auto got = co_await numbers.next();
          EXPECT_EQ(got, (std::vector<int>{i, i}));
        }
      },
      carts());
}

TEST_P(cluster_alone, options_that_make_no_sense_are_refused) {
  runtime rt(options());
  const auto make = [&rt](auto change) {
    cluster::options chosen;
    change(chosen);
    node(rt, chosen, carts());
  };
  EXPECT_THROW(make([](auto& o) { o.nats = "nats://127.0.0.1:1"; }), option_error);
  EXPECT_THROW(make([](auto& o) { o.database = "dbname=x"; }), option_error);
  EXPECT_THROW(make([](auto& o) { o.cluster = "a.b"; }), option_error);
  EXPECT_THROW(make([](auto& o) { o.lease = 10ms; }), option_error);
  EXPECT_THROW(make([](auto& o) { o.margin = o.lease; }), option_error);
  EXPECT_THROW(make([](auto& o) { o.waiting_max = 0; }), option_error);
  for (const char* const page : {"shop.internal", "javascript:alert(1)", "ftp://shop/",
                                 "http://shop/ troupe/", "http://shop/\xc3\xa4"})
    EXPECT_THROW(make([&](auto& o) { o.page = page; }), option_error) << page;
  const auto page_of = [](std::size_t bytes) { return "http://" + std::string(bytes - 7, 'a'); };
  EXPECT_THROW(make([&](auto& o) { o.page = page_of(1'001); }), option_error);
  EXPECT_NO_THROW(make([&](auto& o) { o.page = page_of(1'000); }));
  EXPECT_THROW(node(rt, {}, carts(), carts()), option_error);
}

TEST_P(cluster_alone, the_program_ends_when_it_is_out_of_work) {
  runtime rt(options());
  const node here(rt, {}, carts());
  here.get<Cart>("alice").tell<&Cart::note>(1);
  rt.run();
}

TROUPE_TEST_EACH(cluster_alone, all_settings);

}  // namespace
}  // namespace troupe::test
