// The storage of one node of a cluster, in PostgreSQL or in a SQLite file: batches of nodes that
// have lost a shard, the numbers of each node, and databases that a store without a cluster had
// before.
#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "durable/transfers.hpp"
#include "durable_postgres/place.hpp"
#include "durable_postgres/shards_table.hpp"
#include "support/conformance.hpp"
#include "troupe/durable/store.hpp"
#include "troupe/postgres/connection.hpp"

namespace troupe::test {
namespace {

using durable::actor_name;
using durable::batch;
using durable::held_shard;
using durable::message_id;
using durable::storage;
using durable::stored_message;
using transfers::Account;
using namespace std::chrono_literals;

struct outcome {
  std::string failed;  // "" for nothing
  std::vector<std::uint32_t> moved;
};

template <class T>
task<outcome> outcome_of(task<T> call) {
  outcome is;
  try {
    co_await std::move(call);
  } catch (const durable::shard_moved& moved) {
    is.failed = "shard_moved";
    is.moved = moved.shards();
  } catch (const durable::store_taken&) {
    is.failed = "store_taken";
  } catch (const durable::schema_error& wrong) {
    is.failed = std::string("schema_error ") + wrong.what();
  } catch (const usage_error& wrong) {
    is.failed = std::string("usage_error ") + wrong.what();
  } catch (const std::exception& other) {
    is.failed = other.what();
  }
  co_return is;
}

stored_message message_for(const std::string& key, std::uint64_t order, std::uint32_t shard) {
  stored_message one;
  one.order = order;
  one.shard = shard;
  one.id = message_id::of(key + std::to_string(order));
  one.to = {"Account", key};
  one.method = "open";
  return one;
}

// Lists in functions, for g++ 12 refuses them in coroutines.
std::vector<std::uint32_t> numbers(std::same_as<int> auto... all) {
  return {static_cast<std::uint32_t>(all)...};
}

// Has something of each kind that is inserted.
std::shared_ptr<batch> batch_of(std::uint64_t number, std::same_as<held_shard> auto... of) {
  const std::vector<held_shard> shards{of...};
  auto made = std::make_shared<batch>();
  made->number = number;
  for (const held_shard& one : shards) {
    const std::string key = std::to_string(one.shard);
    const std::uint64_t order = 1'000 * number + one.shard;
    made->arrived.push_back(
        std::make_shared<const stored_message>(message_for(key, order, one.shard)));
    made->states.push_back({{"Account", key}, {1, 2, durable::bytes(number), 0, {}}});
    made->reminders.push_back({{"Account", key}, "later", {}, "", "open", 3, {}, one.shard});
    made->answers.push_back({message_id::of("answer " + key + std::to_string(number)),
                             {},
                             std::chrono::sys_seconds(100s),
                             false,
                             "",
                             durable::bytes(1),
                             {}});
  }
  made->shards = shards;
  return made;
}

// Runs test(runtime) as a task.
template <class Test>
void with(Test test) {
  runtime rt({.workers = 2});
  future<> done = rt.spawn(test(rt));
  rt.run();
  done.get();
}
task<std::unique_ptr<storage>> open_in(const shards_table& table, runtime& rt, std::string life) {
  auto made = table.storage_of(rt, life);
  auto opens = made->open();
  co_await std::move(opens);
  co_return made;
}
std::string rows_in(const shards_table& table) {
  return table.sql(
      "SELECT (SELECT count(*) FROM durable_inbox) || ' ' || (SELECT count(*) FROM "
      "durable_state) || ' ' || (SELECT count(*) FROM durable_reminders) || ' ' || "
      "(SELECT count(*) FROM durable_answers) || ' ' || "
      "(SELECT coalesce(sum(length(value)), 0) FROM durable_state)");
}

// What both do.
enum class kept_in { postgres, sqlite };
class durable_nodes : public testing::TestWithParam<kept_in> {
 protected:
  void SetUp() override {
    if (GetParam() == kept_in::sqlite) {
      table_ = std::make_unique<sqlite_shards_table>();
      return;
    }
    if (!postgres_server::get().why_not().empty()) GTEST_SKIP() << postgres_server::get().why_not();
    table_ = std::make_unique<postgres_shards_table>(make_schema());
  }
  std::string rows() const { return rows_in(*table_); }
  task<std::unique_ptr<storage>> open_node(runtime& rt, std::string life) const {
    return open_in(*table_, rt, std::move(life));
  }

  std::unique_ptr<const shards_table> table_;
};

// What depends on how PostgreSQL locks rows.
class durable_postgres_nodes : public testing::Test {
 protected:
  void SetUp() override {
    if (!postgres_server::get().why_not().empty()) GTEST_SKIP() << postgres_server::get().why_not();
    schema_ = make_schema();
    table_.emplace(schema_);
  }
  std::string rows() const { return rows_in(*table_); }
  task<std::unique_ptr<storage>> open_node(runtime& rt, std::string life) const {
    return open_in(*table_, rt, std::move(life));
  }

  std::string schema_;
  std::optional<postgres_shards_table> table_;
};

TEST_P(durable_nodes, a_batch_for_a_shard_that_has_moved_is_not_stored) {
  with([this](runtime& rt) -> task<> {
    auto opens_a = open_node(rt, "a");
    const auto a = co_await std::move(opens_a);
    auto opens_b = open_node(rt, "b");
    const auto b = co_await std::move(opens_b);
    const held_shard one = table_->give(1, "a"), two = table_->give(2, "a");
    outcome is = co_await outcome_of(a->commit(batch_of(2, one, two)));
    EXPECT_EQ(is.failed, "");
    EXPECT_EQ(rows(), "2 2 2 2 4");

    const held_shard moved = table_->give(2, "b");
    is = co_await outcome_of(a->commit(batch_of(3, one, two)));
    EXPECT_EQ(is.failed, "shard_moved");
    EXPECT_EQ(is.moved, numbers(2));
    EXPECT_EQ(rows(), "2 2 2 2 4");
    EXPECT_EQ(co_await a->last_batch(), 2u);
    is = co_await outcome_of(b->commit(batch_of(9, moved)));
    EXPECT_EQ(is.failed, "");
    EXPECT_EQ(co_await a->last_batch(), 2u);
    EXPECT_EQ(co_await b->last_batch(), 9u);

    // It has the shard again, and the batch is from before.
    table_->give(2, "a");
    is = co_await outcome_of(a->commit(batch_of(4, two)));
    EXPECT_EQ(is.moved, numbers(2));
    table_->give(1, "b");
    is = co_await outcome_of(a->commit(batch_of(5, one, two)));
    EXPECT_EQ(is.moved, numbers(1, 2));
    EXPECT_EQ(rows(), "3 2 2 3 11");
  });
}

task<> until_somebody_waits_for(postgres::transaction& all) {
  for (std::optional<int> waits = 0; waits == 0;) {
    auto asks = all.query_one<int>(
        "SELECT count(*) FROM pg_locks WHERE NOT granted "
        "AND pg_backend_pid() = ANY (pg_blocking_pids(pid))");
    waits = co_await std::move(asks);
  }
}

task<> in_own_thread(std::function<void()> call) {
  auto runs = blocking(std::move(call));
  co_await std::move(runs);
}

// The batch waits for a row that somebody else has locked, after it has seen its shards.
task<> hold_state(postgres::connection other, storage& in, std::shared_ptr<const batch> what,
                  std::shared_ptr<std::optional<future<>>> later,
                  std::shared_ptr<std::optional<future<>>> moves, std::function<void()> move) {
  const auto body = [&in, what, later, moves, move](postgres::transaction& all) -> task<> {
    co_await all.execute("SELECT FROM durable_state FOR UPDATE");
    *later = spawn(in.commit(what));
    auto waits = until_somebody_waits_for(all);
    co_await std::move(waits);
    *moves = spawn(in_own_thread(move));
    for (std::optional<int> wait = 0; wait < 2;) {
      auto asks = all.query_one<int>("SELECT count(*) FROM pg_locks WHERE NOT granted");
      wait = co_await std::move(asks);
    }
  };
  auto runs = other.in_transaction(body);
  co_await std::move(runs);
}

TEST_F(durable_postgres_nodes, a_shard_moves_after_the_batch_that_is_under_way) {
  with([this](runtime& rt) -> task<> {
    auto opens = open_node(rt, "a");
    const auto a = co_await std::move(opens);
    const held_shard one = table_->give(1, "a");
    auto stores = a->commit(batch_of(2, one));
    co_await std::move(stores);
    const auto later = std::make_shared<std::optional<future<>>>();
    const auto moves = std::make_shared<std::optional<future<>>>();
    auto holds = hold_state(postgres::connection(rt, schema_target(schema_)), *a, batch_of(3, one),
                            later, moves, [this] { table_->give(1, "b"); });
    co_await std::move(holds);
    co_await std::move(**later);
    co_await std::move(**moves);
    EXPECT_EQ(rows(), "2 1 1 2 3");
    const outcome is = co_await outcome_of(a->commit(batch_of(4, one)));
    EXPECT_EQ(is.failed, "shard_moved");
  });
}

TEST_F(durable_postgres_nodes, a_node_that_is_silent_within_a_transaction_is_cut_off_soon) {
  with([this](runtime& rt) -> task<> {
    auto opens = open_node(rt, "a");
    const auto a = co_await std::move(opens);
    table_->sql(
        "CREATE TABLE seen (value text); CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql "
        "AS $$BEGIN INSERT INTO seen VALUES "
        "(current_setting('idle_in_transaction_session_timeout')); RETURN NEW; END$$; "
        "CREATE TRIGGER sees BEFORE INSERT ON durable_state FOR EACH ROW EXECUTE FUNCTION see()");
    auto stores = a->commit(batch_of(2, table_->give(1, "a")));
    co_await std::move(stores);
    EXPECT_EQ(table_->sql("SELECT min(value) FROM seen"), "3s");
  });
}

// What a lost connection leaves in the server: a transaction that is still to be committed.
task<> store_batch_seven(postgres::connection other, storage& in,
                         std::shared_ptr<std::optional<future<std::uint64_t>>> later) {
  const auto body = [&in, later](postgres::transaction& all) -> task<> {
    co_await all.execute("UPDATE durable_nodes SET last_batch = 7 WHERE life = 'a'");
    *later = spawn(in.last_batch());
    auto waits = until_somebody_waits_for(all);
    co_await std::move(waits);
  };
  auto runs = other.in_transaction(body);
  co_await std::move(runs);
}

TEST_F(durable_postgres_nodes, the_last_batch_is_known_once_no_commit_is_under_way) {
  with([this](runtime& rt) -> task<> {
    auto opens = open_node(rt, "a");
    const auto a = co_await std::move(opens);
    EXPECT_EQ(co_await a->last_batch(), 0u);
    const auto later = std::make_shared<std::optional<future<std::uint64_t>>>();
    auto stores = store_batch_seven(postgres::connection(rt, schema_target(schema_)), *a, later);
    co_await std::move(stores);
    EXPECT_EQ(co_await std::move(**later), 7u);
  });
}

TEST_P(durable_nodes, a_later_storage_of_the_same_node_takes_its_place) {
  with([this](runtime& rt) -> task<> {
    auto opens = open_node(rt, "a");
    const auto first = co_await std::move(opens);
    const held_shard one = table_->give(1, "a");
    auto stores = first->commit(batch_of(5, one));
    co_await std::move(stores);
    const auto second = table_->storage_of(rt, "a");
    auto opens_again = second->open();
    const durable::opened_storage found = co_await std::move(opens_again);
    EXPECT_EQ(found.last_batch, 5u);
    EXPECT_EQ((co_await outcome_of(first->commit(batch_of(6, one)))).failed, "store_taken");
    EXPECT_EQ((co_await outcome_of(first->reserve_orders())).failed, "store_taken");
    EXPECT_EQ((co_await outcome_of(first->last_batch())).failed, "store_taken");
    EXPECT_EQ((co_await outcome_of(second->commit(batch_of(6, one)))).failed, "");
  });
}

TEST_P(durable_nodes, numbers_of_messages_are_larger_than_all_before) {
  with([this](runtime& rt) -> task<> {
    const auto a = table_->storage_of(rt, "a");
    auto opens = a->open();
    const durable::opened_storage found = co_await std::move(opens);
    auto opens_b = open_node(rt, "b");
    const auto b = co_await std::move(opens_b);
    std::uint64_t last = found.last_order;
    for (int round = 0; round < 6; ++round) {
      storage& one = round % 2 == 0 ? *a : *b;
      const std::uint64_t next = co_await one.reserve_orders();
      EXPECT_GE(next, last + durable::orders_at_once);
      last = next;
    }
  });
}

TEST_P(durable_nodes, a_node_reads_the_rows_of_its_shards) {
  with([this](runtime& rt) -> task<> {
    auto opens = open_node(rt, "a");
    const auto a = co_await std::move(opens);
    auto stores =
        a->commit(batch_of(2, table_->give(1, "a"), table_->give(2, "a"), table_->give(3, "a")));
    co_await std::move(stores);
    EXPECT_TRUE((co_await a->inbox(0, 10)).empty());
    EXPECT_TRUE((co_await a->reminders(10)).empty());
    a->act_for(numbers(1, 3));
    const std::vector<stored_message> found = co_await a->inbox(0, 10);
    EXPECT_EQ(found.size(), 2u);
    if (found.size() != 2) co_return;
    EXPECT_EQ(found[0].shard, 1u);
    EXPECT_EQ(found[1].shard, 3u);
    EXPECT_EQ(found[1].order, 2'003u);
    EXPECT_EQ((co_await a->inbox(found[0].order, 10)).size(), 1u);
    EXPECT_EQ((co_await a->inbox(0, 1)).size(), 1u);
    const std::vector<durable::stored_reminder> due = co_await a->reminders(10);
    EXPECT_EQ(due.size(), 2u);
    for (const auto& one : due) EXPECT_EQ(std::to_string(one.shard), one.to.key);
  });
}

TEST_P(durable_nodes, answers_are_kept_while_their_messages_may_be_sent_again) {
  with([this](runtime& rt) -> task<> {
    auto opens = open_node(rt, "a");
    const auto a = co_await std::move(opens);
    const held_shard one = table_->give(1, "a");
    const auto old = batch_of(2, one);
    const message_id waits = old->arrived[0]->id, goes = message_id::of("gone");
    const auto answer = [&old](message_id id, message_id asker) {
      old->answers.push_back({id, asker, std::chrono::sys_seconds(100s), false, "", {}, {}});
    };
    old->answers.clear();
    answer(waits, message_id());
    answer(message_id::of("its ask"), waits);
    answer(message_id::of("other ask"), goes);
    answer(goes, message_id());
    auto stores = a->commit(old);
    co_await std::move(stores);
    auto forgets = std::make_shared<batch>();
    forgets->number = 3;
    forgets->shards.push_back(one);
    forgets->forget_before = std::chrono::sys_seconds(200s);
    auto stores_next = a->commit(forgets);
    co_await std::move(stores_next);
    EXPECT_TRUE((co_await a->find(waits)).answer.has_value());
    EXPECT_TRUE((co_await a->find(message_id::of("its ask"))).answer.has_value());
    EXPECT_FALSE((co_await a->find(message_id::of("other ask"))).answer.has_value());
    EXPECT_FALSE((co_await a->find(goes)).answer.has_value());

    auto ends = std::make_shared<batch>(*forgets);
    ends->number = 4;
    ends->handled.push_back(old->arrived[0]->order);
    auto stores_last = a->commit(ends);
    co_await std::move(stores_last);
    EXPECT_FALSE((co_await a->find(waits)).answer.has_value());
  });
}

actor_name account(const std::string& key) { return {"Account", key}; }

task<durable::store> open_plain(runtime& rt, const shards_table& table) {
  auto opens = durable::store::open(rt, table.storage_without_cluster(rt), transfers::accounts());
  co_return co_await std::move(opens);
}

TEST_P(durable_nodes, the_first_node_takes_the_tables_over_from_a_store_without_cluster) {
  with([this](runtime& rt) -> task<> {
    auto opens = open_plain(rt, *table_);
    durable::store plain = co_await std::move(opens);
    auto asked = plain.get<Account>("alice").ask<&Account::open>(500);
    co_await std::move(asked);
    table_->sql("UPDATE durable_meta SET value = 77 WHERE name = 'last_number'");
    const auto a = table_->storage_of(rt, "a");
    auto opens_a = a->open();
    const durable::opened_storage found = co_await std::move(opens_a);
    EXPECT_EQ(found.classes.size(), 1u);
    EXPECT_EQ(found.last_order, 77u);
    auto loads = a->load(account("alice"));
    const std::optional<durable::stored_state> state = co_await std::move(loads);
    EXPECT_EQ(state ? durable::decode<Account>(state->value).cents : 0, 500);

    auto late = plain.get<Account>("alice").ask<&Account::open>(1);
    bool is_taken = false;
    try {
      co_await std::move(late);
    } catch (const durable::store_taken&) {
      is_taken = true;
    }
    EXPECT_TRUE(is_taken);
    const outcome again = co_await outcome_of(open_plain(rt, *table_));
    EXPECT_NE(again.failed.find("schema_error"), std::string::npos) << again.failed;
    EXPECT_NE(again.failed.find("belong to a cluster"), std::string::npos) << again.failed;
    auto opens_b = open_node(rt, "b");
    const auto b = co_await std::move(opens_b);
    auto stores = b->commit(batch_of(2, table_->give(1, "b")));
    co_await std::move(stores);
    EXPECT_EQ(table_->sql("SELECT count(*) FROM durable_state"), "2");
  });
}

TEST_P(durable_nodes, a_database_with_messages_that_have_no_shard_is_refused) {
  with([this](runtime& rt) -> task<> {
    auto opens = open_plain(rt, *table_);
    durable::store plain = co_await std::move(opens);
    table_->sql(
        "INSERT INTO durable_reminders VALUES ('Account', 'alice', 'later', 9e15, '', 'open', 1, "
        "'')");
    const auto a = table_->storage_of(rt, "a");
    const outcome is = co_await outcome_of(a->open());
    EXPECT_NE(is.failed.find("messages or reminders"), std::string::npos) << is.failed;
    // Nothing has changed for it.
    auto asked = plain.get<Account>("alice").ask<&Account::open>(500);
    co_await std::move(asked);
    table_->sql("DELETE FROM durable_reminders");
    EXPECT_EQ((co_await outcome_of(a->open())).failed, "");
  });
}

TEST_P(durable_nodes, tables_of_others_are_refused) {
  with([this](runtime& rt) -> task<> {
    auto opens = open_node(rt, "a");
    co_await std::move(opens);
    const auto other = table_->storage_of(rt, "b", "other bank");
    outcome is = co_await outcome_of(other->open());
    EXPECT_NE(is.failed.find("belong to the cluster bank"), std::string::npos) << is.failed;
    table_->sql("UPDATE durable_meta SET value = 3 WHERE name = 'version'");
    const auto older = table_->storage_of(rt, "b");
    is = co_await outcome_of(older->open());
    EXPECT_NE(is.failed.find("have version 3"), std::string::npos) << is.failed;
    table_->sql("DROP TABLE cluster_shards");
    is = co_await outcome_of(older->open());
    EXPECT_NE(is.failed.find("no table cluster_shards"), std::string::npos) << is.failed;
  });
}

TEST_P(durable_nodes, nodes_may_open_an_empty_database_at_the_same_time) {
  with([this](runtime& rt) -> task<> {
    std::vector<task<std::unique_ptr<storage>>> opens;
    for (char life = 'a'; life <= 'd'; ++life) opens.push_back(open_node(rt, std::string(1, life)));
    auto all = when_all(std::move(opens));
    co_await std::move(all);
    EXPECT_EQ(table_->sql("SELECT count(*) FROM durable_nodes"), "4");
  });
}

INSTANTIATE_TEST_SUITE_P(places, durable_nodes, testing::Values(kept_in::postgres, kept_in::sqlite),
                         [](const auto& one) {
                           return std::string(one.param == kept_in::postgres ? "postgres"
                                                                             : "sqlite");
                         });

}  // namespace
}  // namespace troupe::test
