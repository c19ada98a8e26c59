// What every store of leases does.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/placement/places.hpp"
#include "kit/clock_and_random.hpp"
#include "troupe/database/error.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using troupe::cluster::forever;
using troupe::cluster::held_shard;
using troupe::cluster::lease_store;
using troupe::cluster::lease_view;
using troupe::cluster::member_row;
using troupe::cluster::renewal;
using troupe::cluster::shard_count;
using troupe::cluster::shard_row;

// A node as the store sees it: it keeps what it has been told.
class client {
 public:
  client(runtime& rt, const lease_place& in, std::string id) : id_(std::move(id)), store_(in(rt)) {}

  task<> open() { return store_->open("shop"); }
  task<lease_view> renew(std::uint32_t wanted = 0) {
    renewal what = next();
    what.wanted = wanted;
    return send(std::move(what));
  }
  task<lease_view> leave() {
    renewal what = next();
    what.leaves = true;
    return send(std::move(what));
  }
  renewal next() {
    renewal what;
    what.self = {id_, "name of " + id_};
    what.round = ++round_;
    what.lease = lease;
    what.kept = held;
    what.seen = seen;
    return what;
  }
  task<lease_view> send(renewal what) {
    auto asks = store_->renew(std::move(what));
    lease_view view = co_await std::move(asks);
    held = view.held;
    seen = view.seen;
    if (view.members) members = *view.members;
    for (const shard_row& row : view.changed) {
      if (row.fence < rows[row.shard].fence) ADD_FAILURE() << "a fence became smaller";
      rows[row.shard] = row;
    }
    co_return view;
  }

  std::chrono::milliseconds lease = 1h;
  std::vector<held_shard> held;
  std::vector<member_row> members;
  std::uint64_t seen = 0;
  std::array<shard_row, shard_count> rows{};

 private:
  const std::string id_;
  const std::unique_ptr<lease_store> store_;
  std::uint64_t round_ = 0;
};

std::size_t count_of(const client& seen_by, const std::string& owner) {
  return static_cast<std::size_t>(std::ranges::count(seen_by.rows, owner, &shard_row::owner));
}

class lease_stores : public testing::TestWithParam<lease_place_kind> {
 protected:
  void SetUp() override {
    const std::string why_not = GetParam().why_not();
    if (!why_not.empty()) GTEST_SKIP() << why_not;
    place_ = GetParam().make();
  }
  // Runs test(a, b), two open clients.
  template <class Test>
  void with_two(Test test) {
    runtime rt({.workers = 2, .policy = GetParam().runs_on});
    const auto all = [&]() -> task<> {
      client a(rt, place_, "a"), b(rt, place_, "b");
      auto opens = a.open();
      co_await std::move(opens);
      auto opens_b = b.open();
      co_await std::move(opens_b);
      auto runs = test(a, b);
      co_await std::move(runs);
    };
    future<> done = rt.spawn(all());
    rt.run();
    done.get();
  }
  lease_place place_;
};

TEST_P(lease_stores, a_member_takes_what_nobody_has) {
  with_two([](client& a, client& b) -> task<> {
    const lease_view first = co_await a.renew();
    EXPECT_TRUE(first.has_changed);
    EXPECT_TRUE(first.held.empty());
    EXPECT_EQ(a.members, (std::vector<member_row>{{"a", "name of a"}}));
    EXPECT_EQ(first.next_end, forever);
    const lease_view took = co_await a.renew(10);
    EXPECT_TRUE(took.has_changed);
    EXPECT_EQ(took.held.size(), 10u);
    for (const held_shard& one : took.held) EXPECT_EQ(one.fence, 1u);
    EXPECT_EQ(took.changed.size(), 10u);
    EXPECT_FALSE(took.members);
    const lease_view same = co_await a.renew();
    EXPECT_FALSE(same.has_changed);
    EXPECT_EQ(same.held, took.held);
    EXPECT_TRUE(same.changed.empty());
    EXPECT_EQ(same.seen, took.seen);

    const lease_view others = co_await b.renew(2'000);
    EXPECT_EQ(others.held.size(), shard_count - 10);
    EXPECT_EQ(others.changed.size(), shard_count);
    EXPECT_EQ(b.members.size(), 2u);
    EXPECT_GT(others.next_end, 10min);
    EXPECT_LE(others.next_end, 1h);
    const lease_view none = co_await a.renew(5);
    EXPECT_EQ(none.held, took.held);
    EXPECT_EQ(none.changed.size(), shard_count - 10);
    EXPECT_EQ(count_of(a, "b"), shard_count - 10);
    EXPECT_EQ(a.members, b.members);
  });
}

TEST_P(lease_stores, the_address_of_a_page_is_known_to_the_others) {
  with_two([](client& a, client& b) -> task<> {
    const std::string page = "https://shop-1.internal/troupe/";
    for (int round = 0; round < 2; ++round) {  // a member that joins again has it again
      renewal joins = a.next();
      joins.self.page = page;
      co_await a.send(joins);
      co_await b.renew();
      EXPECT_EQ(b.members,
                (std::vector<member_row>{{"a", "name of a", false, page}, {"b", "name of b"}}));
      // Later renewals change nothing in it.
      renewal leaving = a.next();
      leaving.self.page = page;
      leaving.self.is_leaving = true;
      co_await a.send(leaving);
      co_await b.renew();
      EXPECT_EQ(b.members.at(0), (member_row{"a", "name of a", true, page}));
      co_await a.leave();
      co_await b.renew();
      EXPECT_EQ(b.members, (std::vector<member_row>{{"b", "name of b"}}));
    }
  });
}

// The tables of a program that knew no addresses of pages, whose nodes still run beside a new one.
TEST(lease_tables, of_an_earlier_program_take_the_addresses_of_pages) {
  if (const std::string why_not = why_no_postgres(); !why_not.empty()) GTEST_SKIP() << why_not;
  const std::string schema = "earlier_leases";
  postgres_server::get().sql("CREATE SCHEMA " + schema);
  const std::string target = postgres_server::get().target("options=-csearch_path=" + schema);
  const lease_place place = [target](runtime& rt) {
    return troupe::cluster::postgres_leases(rt, target);
  };
  runtime rt;
  const auto test = [&]() -> task<> {
    client first(rt, place, "first"), second(rt, place, "second");
    auto opens = first.open();
    co_await std::move(opens);
    postgres_server::get().sql("DROP TABLE " + schema + ".cluster_pages");
    postgres_server::get().sql(
        "INSERT INTO " + schema +
        ".cluster_members VALUES ('shop', 'old', 'an old one', 1, now() + interval '1 h', false)");
    auto opens_again = second.open();
    co_await std::move(opens_again);
    renewal joins = second.next();
    joins.self.page = "http://second/";
    auto sends = second.send(joins);
    co_await std::move(sends);
    EXPECT_EQ(second.members,
              (std::vector<member_row>{{"old", "an old one"},
                                       {"second", "name of second", false, "http://second/"}}));
  };
  future<> done = rt.spawn(test());
  rt.run();
  done.get();
}

// A role that may only read and write the tables which somebody else has made shows no pages.
TEST(lease_tables, of_a_role_with_few_rights_have_no_pages) {
  if (const std::string why_not = why_no_postgres(); !why_not.empty()) GTEST_SKIP() << why_not;
  const std::string schema = "leases_of_few_rights";
  postgres_server::get().sql("CREATE SCHEMA " + schema);
  postgres_server::get().sql("CREATE ROLE few_rights LOGIN");
  const auto place_of = [&](const std::string& user) {
    const std::string target =
        postgres_server::get().target("user=" + user + " options=-csearch_path=" + schema);
    return lease_place(
        [target](runtime& rt) { return troupe::cluster::postgres_leases(rt, target); });
  };
  const lease_place owner = place_of("tester"), other = place_of("few_rights");
  runtime rt;
  const auto test = [&]() -> task<> {
    client first(rt, owner, "first"), second(rt, other, "second");
    auto opens = first.open();
    co_await std::move(opens);
    for (const std::string& text :
         {"DROP TABLE " + schema + ".cluster_pages",
          "GRANT USAGE ON SCHEMA " + schema + " TO few_rights",
          "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + schema +
              " TO few_rights"})
      EXPECT_EQ(postgres_server::get().sql(text), "");
    auto opens_again = second.open();
    co_await std::move(opens_again);
    renewal joins = second.next();
    joins.self.page = "http://second/";
    auto sends = second.send(joins);
    co_await std::move(sends);
    EXPECT_EQ(second.members, (std::vector<member_row>{{"second", "name of second"}}));
  };
  future<> done = rt.spawn(test());
  rt.run();
  done.get();
}

TEST_P(lease_stores, what_is_not_kept_is_released_with_a_larger_fence) {
  with_two([](client& a, client& b) -> task<> {
    co_await a.renew(1'024);
    a.held.erase(a.held.begin(), a.held.begin() + 24);
    const lease_view less = co_await a.renew();
    EXPECT_TRUE(less.has_changed);
    EXPECT_EQ(less.held.size(), 1'000u);
    EXPECT_EQ(less.changed.size(), 24u);
    for (const shard_row& row : less.changed) {
      EXPECT_EQ(row.owner, "");
      EXPECT_EQ(row.fence, 2u);
    }
    const lease_view took = co_await b.renew(100);
    EXPECT_EQ(took.held.size(), 24u);
    for (const held_shard& one : took.held) EXPECT_EQ(one.fence, 3u);
    // With a fence that the row has not any more it is not kept.
    a.held.front().fence = 7;
    const lease_view other = co_await a.renew();
    EXPECT_EQ(other.held.size(), 999u);
    // In one renewal the same shard may go and come.
    a.held.pop_back();
    const lease_view back = co_await a.renew(2);
    EXPECT_EQ(back.held.size(), 1'000u);
    EXPECT_EQ(std::ranges::count(back.held, 3u, &held_shard::fence), 2);
  });
}

TEST_P(lease_stores, who_leaves_has_nothing_any_more) {
  with_two([](client& a, client& b) -> task<> {
    co_await a.renew(500);
    co_await b.renew(100);
    const lease_view left = co_await a.leave();
    EXPECT_TRUE(left.has_changed);
    EXPECT_TRUE(left.held.empty());
    co_await b.renew();
    EXPECT_EQ(b.members.size(), 1u);
    EXPECT_EQ(count_of(b, ""), shard_count - 100);
    EXPECT_EQ(count_of(b, "b"), 100u);
  });
}

TEST_P(lease_stores, who_is_about_to_leave_says_so_and_keeps_what_it_has) {
  with_two([](client& a, client& b) -> task<> {
    co_await a.renew(500);
    co_await b.renew(100);
    co_await b.renew();
    EXPECT_FALSE(b.members.at(0).is_leaving);
    for (int i = 0; i < 2; ++i) {
      renewal leaving = a.next();
      leaving.self.is_leaving = true;
      const lease_view told = co_await a.send(leaving);
      EXPECT_EQ(told.held.size(), 500u);
      EXPECT_EQ(told.has_changed, i == 0);
      co_await b.renew();
      EXPECT_EQ(b.members.size(), 2u);
      EXPECT_TRUE(b.members.at(0).is_leaving);
      EXPECT_FALSE(b.members.at(1).is_leaving);
    }
    EXPECT_EQ(count_of(b, "a"), 500u);
  });
}

TEST_P(lease_stores, a_lease_that_runs_out_frees_the_shards) {
  with_two([](client& a, client& b) -> task<> {
    a.lease = 150ms;
    co_await a.renew(600);
    const lease_view seen = co_await b.renew(100);
    EXPECT_TRUE(count_of(b, "a") == 0 || seen.next_end <= 150ms);
    for (lease_view view = seen; count_of(b, "a") != 0;) {
      co_await sleep_for(std::max<std::chrono::milliseconds>(view.next_end, 1ms));
      view = co_await b.renew();
    }
    EXPECT_EQ(b.members.size(), 1u);
    EXPECT_EQ(count_of(b, ""), shard_count - 100);
    const lease_view took = co_await b.renew(600);
    EXPECT_EQ(took.held.size(), 700u);
    EXPECT_EQ(std::ranges::count(took.held, 3u, &held_shard::fence), 600);
    // It comes back with nothing.
    const lease_view back = co_await a.renew();
    EXPECT_TRUE(back.held.empty());
    EXPECT_TRUE(back.has_changed);
    EXPECT_EQ(a.members.size(), 2u);
    EXPECT_EQ(count_of(a, "b"), 700u);
  });
}

TEST_P(lease_stores, a_lease_that_has_run_out_and_that_nobody_has_taken_goes_on) {
  with_two([](client& a, client&) -> task<> {
    a.lease = 1ms;
    const lease_view took = co_await a.renew(600);
    co_await sleep_for(20ms);
    a.lease = 1h;
    const lease_view same = co_await a.renew();
    EXPECT_EQ(same.held, took.held);
  });
}

TEST_P(lease_stores, a_renewal_that_comes_late_changes_nothing) {
  with_two([](client& a, client& b) -> task<> {
    co_await a.renew();
    renewal late = a.next();
    co_await a.renew(300);
    const auto seen = a.seen;
    const auto held = a.held;
    std::optional<database::failure> failed;
    auto sends = a.send(std::move(late));
    try {
      co_await std::move(sends);
    } catch (const database::error& why) {
      failed = why.kind();
    }
    EXPECT_EQ(failed, database::failure::conflict);
    const lease_view same = co_await a.renew();
    EXPECT_EQ(same.held, held);
    EXPECT_EQ(same.seen, seen);
    co_await b.renew();
    EXPECT_EQ(count_of(b, "a"), 300u);
  });
}

TEST_P(lease_stores, after_a_failure_all_is_told_and_nothing_is_assumed) {
  with_two([](client& a, client& b) -> task<> {
    co_await b.renew(20);
    co_await a.renew(300);
    // As if the answers to the last renewals had been lost.
    a.held.resize(100);
    a.seen = 0;
    a.rows = {};
    const lease_view all = co_await a.renew();
    EXPECT_EQ(all.held.size(), 100u);
    EXPECT_EQ(all.changed.size(), 320u);
    EXPECT_EQ(count_of(a, "a"), 100u);
    EXPECT_EQ(count_of(a, "b"), 20u);
    EXPECT_EQ(a.members.size(), 2u);
  });
}

TEST_P(lease_stores, a_lease_may_last_forever) {
  with_two([](client& a, client& b) -> task<> {
    a.lease = forever;
    const lease_view took = co_await a.renew(1'024);
    EXPECT_EQ(took.held.size(), shard_count);
    const lease_view none = co_await b.renew(1);
    EXPECT_TRUE(none.held.empty());
    EXPECT_GT(none.next_end, 24h);
  });
}

// Takes and gives back, beside others.
task<> take_part(client& one, int rounds) {
  auto opens = one.open();
  co_await std::move(opens);
  for (int i = 0; i < rounds; ++i) {
    std::erase_if(one.held, [](const auto&) { return kit::random_number() % 3 == 0; });
    const auto wanted = static_cast<std::uint32_t>(kit::random_number() % 3 * 100);
    auto asks = one.renew(wanted);
    static_cast<void>(co_await std::move(asks));
  }
}

TEST_P(lease_stores, members_beside_each_other_agree) {
  runtime rt({.workers = 2, .policy = GetParam().runs_on});
  const lease_place place = place_;
  const auto all = [&rt, place]() -> task<> {
    std::vector<std::unique_ptr<client>> clients;
    std::vector<future<>> parts;
    for (int i = 0; i < 4; ++i) {
      clients.push_back(std::make_unique<client>(rt, place, "node " + std::to_string(i)));
      parts.push_back(rt.spawn(take_part(*clients.back(), fewer(40))));
    }
    for (auto& one : parts) co_await std::move(one);
    std::map<std::uint32_t, std::uint64_t> owned;
    for (auto& one : clients) {
      auto asks = one->renew();
      static_cast<void>(co_await std::move(asks));
      for (const held_shard& each : one->held) {
        EXPECT_TRUE(owned.emplace(each.shard, each.fence).second) << each.shard;
      }
    }
    // Each has seen all that the others have done, in whatever order they did it.
    for (auto& one : clients) {
      auto asks = one->renew();
      static_cast<void>(co_await std::move(asks));
      EXPECT_EQ(one->members.size(), 4u);
      for (std::uint32_t i = 0; i < shard_count; ++i) {
        const shard_row& row = one->rows[i];
        const auto found = owned.find(i);
        EXPECT_EQ(row.owner.empty(), found == owned.end()) << i;
        if (found == owned.end()) continue;
        EXPECT_EQ(row.fence, found->second) << i;
      }
    }
  };
  future<> done = rt.spawn(all());
  rt.run();
  done.get();
}

INSTANTIATE_TEST_SUITE_P(places, lease_stores, testing::ValuesIn(lease_place_kinds),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace troupe::test
