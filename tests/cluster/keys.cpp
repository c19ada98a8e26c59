// Keys and message ids have one meaning on all nodes: what one accepts, another one that owns the
// actor accepts as well (docs/protocols/identity.md).
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "support/conformance.hpp"
#include "troupe/cluster/node.hpp"
#include "troupe/cluster/simulation.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::test {
namespace {

using cluster::node;
using durable::message_id;

struct Echo {
  explicit Echo(cluster::home its) : here(std::move(its)) {}
  std::size_t key_size() const { return here.key().size(); }
  task<std::size_t> ask_other(std::string key) {
    auto asks = here.get<Echo>(key).ask<&Echo::key_size>();
    co_return co_await std::move(asks);
  }
  cluster::home here;
};
struct Sum {
  std::int64_t cents = 0;
  std::int64_t add(std::int64_t by) { return cents += by; }
  std::int64_t take(std::int64_t by) { return cents -= by; }
};

task<std::string> outcome_of(std::function<task<>()> call) {
  try {
    auto runs = call();
    co_await std::move(runs);
  } catch (const usage_error&) {
    co_return "usage_error";
  } catch (const cluster::remote_exception& thrown) {
    co_return thrown.type() == "troupe::usage_error" ? "usage_error" : thrown.type();
  } catch (const durable::id_mismatch&) {
    co_return "id_mismatch";
  } catch (const durable::shard_moved&) {
    co_return "moved";
  } catch (const std::exception& thrown) {
    co_return thrown.what();
  }
  co_return "ok";
}

task<> expect_size(task<std::size_t> asks, std::size_t size) {
  EXPECT_EQ(co_await std::move(asks), size);
}
task<std::size_t> ask_size(cluster::ref<Echo> whom) {
  auto asks = whom.ask<&Echo::key_size>();
  co_return co_await std::move(asks);
}
task<std::size_t> ask_through_home(cluster::ref<Echo> whom, std::string key) {
  auto asks = whom.ask<&Echo::ask_other>(std::move(key));
  co_return co_await std::move(asks);
}

// A shard that is on its way from one node to another refuses a message for a moment.
task<std::string> last_outcome_of(std::function<task<>()> call) {
  for (;;) {
    auto ends = outcome_of(call);
    std::string outcome = co_await std::move(ends);
    if (outcome != "moved") co_return outcome;
    co_await sleep_for(std::chrono::milliseconds(20));
  }
}

// Each entry that takes a key.
struct entry {
  const char* name;
  std::function<task<>(const node& on, std::string key)> use;
};
std::vector<entry> entries() {
  return {{"node::get",
           [](const node& on, const std::string& key) {
             return expect_size(ask_size(on.get<Echo>(key)), key.size());
           }},
          {"home::get", [](const node& on, const std::string& key) {
             return expect_size(ask_through_home(on.get<Echo>("home"), key), key.size());
           }}};
}

class cluster_keys : public conformance {
 protected:
  template <class Test>
  void on_two_nodes(Test test) {
    runtime rt(options());
    auto all = [&]() -> task<> {
      const cluster::simulation here;
      const auto echoes = cluster::kind<Echo, &Echo::key_size, &Echo::ask_other>();
      const auto sums = durable::kind<Sum, &Sum::add, &Sum::take>();
      const node one(rt, here, {.name = "one"}, echoes, sums);
      const node two(rt, here, {.name = "two"}, echoes, sums);
      co_await one.ready();
      co_await two.ready();
      auto runs = test(one, two);
      co_await std::move(runs);
      co_await one.stop();
      co_await two.stop();
    };
    future<> done = rt.spawn(all());
    rt.run();
    done.get();
  }
};

task<> expect_outcomes(const node& one, const node& two, std::string key, std::string wanted) {
  const std::vector<entry> all = entries();
  for (const entry& each : all) {
    for (const node* const on : {&one, &two}) {
      std::function<task<>()> call = [&each, on, key] { return each.use(*on, key); };
      auto ends = last_outcome_of(std::move(call));
      EXPECT_EQ(co_await std::move(ends), wanted) << each.name << " " << key.size();
    }
  }
}

TEST_P(cluster_keys, a_key_has_one_limit_on_all_nodes) {
  on_two_nodes([](const node& one, const node& two) -> task<> {
    auto fits = expect_outcomes(one, two, std::string(65'535, 'k'), "ok");
    co_await std::move(fits);
    auto exceeds = expect_outcomes(one, two, std::string(65'536, 'k'), "usage_error");
    co_await std::move(exceeds);
  });
}

TEST(cluster_refs, a_ref_in_a_message_has_no_longer_key) {
  const auto bytes =
      durable::encode(std::tuple(std::string("Echo"), std::string(65'536, 'k'), std::string()));
  try {
    static_cast<void>(durable::decode<cluster::ref<Echo>>(bytes));
    ADD_FAILURE() << "it was read";
  } catch (const durable::decode_error& wrong) {
    EXPECT_NE(std::string(wrong.what()).find("longer key"), std::string::npos) << wrong.what();
  }
}

task<> add(durable::ref<Sum> to, std::int64_t by) {
  auto asks = to.ask<&Sum::add>(by);
  static_cast<void>(co_await std::move(asks));
}
task<> take(durable::ref<Sum> from, std::int64_t by) {
  auto asks = from.ask<&Sum::take>(by);
  static_cast<void>(co_await std::move(asks));
}

task<> expect_one_call(const node& first, const node& second, std::string key) {
  const message_id id = message_id::of(key);
  const durable::ref<Sum> once = first.get_durable<Sum>(key).with_id(id);
  auto begins = last_outcome_of([once] { return add(once, 5); });
  EXPECT_EQ(co_await std::move(begins), "ok");
  const durable::ref<Sum> again = second.get_durable<Sum>(key).with_id(id);
  const std::vector<std::pair<std::function<task<>()>, std::string>> calls = {
      {[again] { return add(again, 5); }, "ok"},
      {[again] { return add(again, 6); }, "id_mismatch"},
      {[again] { return take(again, 5); }, "id_mismatch"}};
  for (const auto& [call, wanted] : calls) {
    auto ends = last_outcome_of(call);
    EXPECT_EQ(co_await std::move(ends), wanted);
  }
}

task<> expect_sum(durable::ref<Sum> whom) {
  auto asks = whom.ask<&Sum::add>(1);
  static_cast<void>(co_await std::move(asks));
}

TEST_P(cluster_keys, a_durable_key_has_one_limit_on_all_nodes) {
  on_two_nodes([](const node& one, const node& two) -> task<> {
    for (const node* const on : {&one, &two}) {
      for (const std::size_t bytes : {100'000u, 512u * 1024, 512u * 1024 + 1, 2u << 20}) {
        std::function<task<>()> call = [on, bytes] {
          return expect_sum(on->get_durable<Sum>(std::string(bytes, 'k')));
        };
        auto ends = last_outcome_of(std::move(call));
        EXPECT_EQ(co_await std::move(ends), bytes > 512u * 1024 ? "usage_error" : "ok") << bytes;
      }
    }
  });
}

TEST_P(cluster_keys, an_id_stands_for_one_message_whatever_the_node) {
  on_two_nodes([](const node& one, const node& two) -> task<> {
    for (int i = 0; i < 6; ++i) {
      auto checks = expect_one_call(i % 2 == 0 ? one : two, i % 2 == 0 ? two : one,
                                    "sum " + std::to_string(i));
      co_await std::move(checks);
    }
  });
}

TROUPE_TEST_EACH(cluster_keys, each_policy);

}  // namespace
}  // namespace troupe::test
