// A persisted object outlives rollbacks and its context, and is freed when its last holder drops
// it.
#include "troupe/context/persist.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "context/blocks/poison.hpp"
#include "troupe/base/error.hpp"
#include "troupe/context/snapshot.hpp"

namespace troupe {
namespace {

using text = std::pmr::string;
constexpr const char* long_text = "a text that is longer than a string holds by itself";

struct witness {
  explicit witness(std::vector<int>& log, int name) : to(log), id(name) {}
  witness(const witness&) = delete;
  ~witness() { to.push_back(id); }
  std::vector<int>& to;
  int id;
};

TEST(persist, it_outlives_its_context) {
  const context_counters before = count_contexts();
  owned_context work = make_context();
  persisted<text> kept = persist(work->make<text>(long_text));
  work.release();
  EXPECT_EQ(count_contexts().persisted - before.persisted, 1);
  EXPECT_EQ(count_contexts().active, before.active);
  EXPECT_EQ(*kept, long_text);
  persisted<text> copy = kept;
  kept = {};
  EXPECT_FALSE(kept);
  EXPECT_EQ(*copy, long_text);
  copy = {};
  EXPECT_EQ(count_contexts().persisted, before.persisted);
  EXPECT_EQ(count_contexts().bytes, before.bytes);
}

TEST(persist, it_outlives_a_rollback_which_is_counted_as_kept) {
  const context_counters before = count_contexts();
  owned_context work = make_context();
  snapshot here(*work);
  persisted<text> kept = persist(work->make<text>(long_text));
  work->rollback(here);
  EXPECT_EQ(count_contexts().rollbacks_kept - before.rollbacks_kept, 1);
  // The context allocates from other memory from here on.
  for (int i = 0; i < 1000; ++i) work->make<std::pmr::vector<int>>(100, i);
  EXPECT_EQ(*kept, long_text);
  work->rollback(here);
  EXPECT_EQ(count_contexts().rollbacks_kept - before.rollbacks_kept, 1)
      << "nothing of that was persisted";
  EXPECT_EQ(*kept, long_text);
}

TEST(persist, what_nobody_holds_any_more_is_rolled_back) {
  const context_counters before = count_contexts();
  std::vector<int> log;
  owned_context work = make_context();
  snapshot here(*work);
  {
    auto first = work->make<witness>(log, 1);
    persisted<witness> kept = persist(first);
  }
  work->rollback(here);
  EXPECT_EQ(log, std::vector{1});
  EXPECT_EQ(count_contexts().rollbacks_kept, before.rollbacks_kept);
}

TEST(persist, destructors_of_what_was_kept_are_called_newest_first_with_the_last_holder) {
  std::vector<int> log;
  owned_context work = make_context();
  work->make<witness>(log, 1);
  snapshot here(*work);
  work->make<witness>(log, 2);
  auto three = work->make<witness>(log, 3);
  persisted<witness> kept = persist(three);
  work->make<witness>(log, 4);
  work->rollback(here);
  work->make<witness>(log, 5);
  EXPECT_TRUE(log.empty());
  work->rollback(here);
  EXPECT_EQ(log, std::vector{5});
  kept = {};
  EXPECT_EQ(log, (std::vector{5, 4, 3, 2}));
  work.release();
  EXPECT_EQ(log, (std::vector{5, 4, 3, 2, 1}));
}

// A persisted object refers to older memory, which also stays when the context ends.
TEST(persist, older_memory_that_it_refers_to_stays) {
  struct node {
    const text* name;
    const node* next;
  };
  owned_context work = make_context();
  auto name = work->make<text>(long_text);
  auto first = work->make<node>(name.get(), nullptr);
  snapshot taken(*work);
  auto second = work->make<node>(name.get(), first.get());
  snapshot two(*work);
  auto third = work->make<node>(name.get(), second.get());
  persisted<node> kept = persist(third);
  work->rollback(two);
  work->make<text>(5000, 'x');
  work->rollback(taken);
  work->make<text>(5000, 'y');
  work.release();
  owned_context others[10];
  for (auto& each : others) {
    each = make_context();
    each->make<text>(5000, 'z');
  }
  EXPECT_EQ(*kept->name, long_text);
  EXPECT_EQ(*kept->next->name, long_text);
  EXPECT_EQ(*kept->next->next->name, long_text);
  EXPECT_EQ(kept->next->next->next, nullptr);
}

TEST(persist, since_the_snapshot_only_lets_the_rest_go) {
  std::vector<int> log;
  const context_counters before = count_contexts();
  owned_context work = make_context();
  work->make<witness>(log, 1);
  for (int i = 0; i < 100; ++i) static_cast<void>(work->allocate(100'000));
  snapshot here(*work);
  auto two = work->make<witness>(log, 2);
  persisted<witness> kept = persist_since_snapshot(two);
  work.release();
  EXPECT_EQ(log, std::vector{1}) << "the older one has gone, the persisted one not";
  EXPECT_LT(count_contexts().bytes - before.bytes, 3 << 20);
  EXPECT_EQ(kept->id, 2);
  kept = {};
  EXPECT_EQ(log, (std::vector{1, 2}));
  EXPECT_EQ(count_contexts().bytes, before.bytes);
}

TEST(persist, an_older_object_is_held_whole) {
  std::vector<int> log;
  owned_context work = make_context();
  auto kept_witness = work->make<witness>(log, 1);
  snapshot here(*work);
  persisted<witness> kept = persist_since_snapshot(kept_witness);
  work.release();
  EXPECT_TRUE(log.empty());
  kept = {};
  EXPECT_EQ(log, std::vector{1});
}

TEST(persist, a_snapshot_that_ends_leaves_what_was_persisted_to_the_older_one) {
  std::vector<int> log;
  owned_context work = make_context();
  snapshot outer(*work);
  auto older = work->make<witness>(log, 1);
  persisted<witness> first = persist(older);
  persisted<witness> second;
  {
    snapshot inner(*work);
    auto two = work->make<witness>(log, 2);
    second = persist_since_snapshot(two);
  }
  work->rollback(outer);
  EXPECT_TRUE(log.empty());
  first = {};
  EXPECT_TRUE(log.empty()) << "the newer one holds what is older";
  EXPECT_EQ(second->id, 2);
  second = {};
  EXPECT_EQ(log, (std::vector{2, 1}));
}

TEST(persist, a_connection_stays_flat_while_others_hold_a_few_of_its_requests) {
  owned_context connection = make_context();
  connection->make<text>(long_text);
  snapshot idle(*connection);
  std::deque<persisted<text>> held;
  const std::int64_t before = count_contexts().bytes;
  for (int request = 0; request < 20'000; ++request) {
    auto answer = connection->make<text>(long_text);
    if (request % 3 == 0) held.push_back(persist(answer));
    if (held.size() > 5) held.pop_front();
    connection->rollback(idle);
    ASSERT_LE(count_contexts().bytes - before, 10 * 20'480);
  }
  for (const auto& kept : held) EXPECT_EQ(*kept, long_text);
  held.clear();
}

TEST(persist, in_a_destructor_that_a_rollback_calls_it_is_refused) {
  struct last_words {
    last_words(in_context<text>& last, bool& was_refused) : words(last), refused(was_refused) {}
    ~last_words() {
      try {
        static_cast<void>(persist(words));
      } catch (const usage_error&) {
        refused = true;
      }
    }
    in_context<text>& words;
    bool& refused;
  };
  bool refused = false;
  owned_context work = make_context();
  auto words = work->make<text>(long_text);
  work->make<last_words>(words, refused);
  work.release();
  EXPECT_TRUE(refused);
}

TEST(persist, what_writes_to_it_after_its_context_went_is_told) {
  owned_context work = make_context();
  auto words = work->make<std::pmr::vector<text>>();
  persisted<std::pmr::vector<text>> kept = persist(words);
  work.release();
  auto& written = const_cast<std::pmr::vector<text>&>(*kept);
  EXPECT_THROW(written.resize(10'000), usage_error);
}

struct item {
  item(std::atomic<int>& counted, int n, const std::pmr::polymorphic_allocator<>& allocator)
      : alive(counted), values(static_cast<std::size_t>(n % 50 + 1), n, allocator) {
    ++alive;
  }
  using allocator_type = std::pmr::polymorphic_allocator<>;
  ~item() { --alive; }
  std::atomic<int>& alive;
  std::pmr::vector<int> values;
};

// Contexts are reused, rolled back and released, while other threads read and drop what was
// persisted in them.
TEST(persist, threads_hold_and_drop_while_the_context_goes_on) {
  struct held {
    persisted<item> kept_item;
    int value;
  };
  const context_counters before = count_contexts();
  std::atomic<int> alive{0};
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<held> queue;
  bool over = false;

  const auto read = [&](unsigned seed) {
    std::vector<held> mine;
    for (;;) {
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return over || !queue.empty(); });
        if (queue.empty()) return;
        mine.push_back(std::move(queue.front()));
        queue.pop_front();
      }
      for (const held& each : mine) {
        for (const int value : each.kept_item->values) ASSERT_EQ(value, each.value);
      }
      if (mine.size() > seed % 7) mine.clear();
    }
  };
  std::vector<std::thread> readers;
  for (unsigned i = 3; i < 6; ++i) readers.emplace_back(read, i);
  const int rounds = 300;
  for (int round = 0; round < rounds; ++round) {
    owned_context work = make_context();
    work->make<item>(alive, round);
    snapshot outer(*work);
    for (int request = 0; request < 10; ++request) {
      auto two = work->make<item>(alive, round + request);
      snapshot inner(*work);
      for (int i = 0; i < 4; ++i) {
        auto three = work->make<item>(alive, round + i);
        if ((round + request + i) % 3 != 0) {
          std::lock_guard lock(mutex);
          queue.push_back({i % 2 == 0 ? persist(three) : persist_since_snapshot(three), round + i});
          if (i == 3) queue.push_back({persist(two), round + request});
          changed.notify_one();
        }
        if (i % 2 == 1) work->rollback(inner);
      }
      if (request % 4 == 3) work->rollback(outer);
    }
  }
  {
    std::lock_guard lock(mutex);
    over = true;
    changed.notify_all();
  }
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(alive.load(), 0);
  EXPECT_EQ(count_contexts().persisted, before.persisted);
  EXPECT_EQ(count_contexts().bytes, before.bytes);
}

}  // namespace
}  // namespace troupe
