// What a store does when its database fails: typed errors, the last stored state, and it goes on
// when the database is back.
#include <sqlite3.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/conformance.hpp"
#include "support/scratch.hpp"
#include "troupe/durable/simulated_storage.hpp"
#include "troupe/durable/sqlite_storage.hpp"
#include "troupe/durable/store.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using database::failure;
using durable::store;

struct Page {
  std::string text;
  std::size_t put(std::string now) {
    text = std::move(now);
    return text.size();
  }
  std::string get() const { return text; }
};

auto pages() { return durable::kind<Page, &Page::put, &Page::get>(); }

template <class T>
task<std::optional<failure>> failure_of(future<T> asked) {
  try {
    co_await std::move(asked);
  } catch (const database::error& failed) {
    co_return failed.kind();
  }
  co_return std::nullopt;
}

class durable_faults : public testing::Test {
 protected:
  static durable::options quick() {
    durable::options chosen;
    chosen.away_first = 1ms;
    return chosen;
  }
  task<store> open(runtime& rt, sqlite::options how = {}) {
    how.busy_timeout = 20ms;
    return store::open(rt, durable::sqlite_storage(rt, file(), how), quick(), pages());
  }
  std::string file() const { return folder_ / "store.db"; }
  template <class Test>
  void run(Test test) {
    runtime rt({.workers = 2});
    future<> done = rt.spawn(test(rt));
    rt.run();
    done.get();
  }
  // Until the store answers again.
  static task<std::string> text_of(store from) {
    for (;;) {
      std::optional<std::string> found;
      try {
        auto asked = from.get<Page>("it").ask<&Page::get>();
        found = co_await std::move(asked);
      } catch (const database::error&) {
      }
      if (found) co_return *found;
      co_await sleep_for(1ms);
    }
  }

  scratch folder_;
};

TEST_F(durable_faults, a_read_only_file_is_refused_at_the_start) {
  run([this](runtime& rt) -> task<> {
    auto opens = open(rt);
    co_await std::move(opens);
  });
  run([this](runtime& rt) -> task<> {
    std::optional<failure> kind;
    try {
      sqlite::options how;
      how.read_only = true;
      auto opens = open(rt, how);
      co_await std::move(opens);
    } catch (const database::error& failed) {
      kind = failed.kind();
    }
    EXPECT_EQ(kind, failure::read_only);
  });
}

TEST_F(durable_faults, a_locked_database_fails_the_asker_and_comes_back) {
  run([this](runtime& rt) -> task<> {
    auto opens = open(rt);
    const store kept = co_await std::move(opens);
    const auto it = kept.get<Page>("it");
    co_await it.ask<&Page::put>("first");
    sqlite3* other = nullptr;
    EXPECT_EQ(sqlite3_open(file().c_str(), &other), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
    auto refused = failure_of(it.ask<&Page::put>("second"));
    EXPECT_EQ(co_await std::move(refused), failure::busy);
    EXPECT_TRUE(kept.counts().is_away || kept.counts().failed_commits > 0);
    sqlite3_close(other);
    auto reads = text_of(kept);
    EXPECT_EQ(co_await std::move(reads), "first");
    co_await it.ask<&Page::put>("third");
    auto again = text_of(kept);
    EXPECT_EQ(co_await std::move(again), "third");
  });
}

// As a full disk does: no file grows beyond the limit.
class small_files {
 public:
  explicit small_files(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit now = before_;
    now.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~small_files() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(durable_faults, a_full_disk_fails_the_asker_and_comes_back) {
  run([this](runtime& rt) -> task<> {
    auto opens = open(rt);
    const store kept = co_await std::move(opens);
    const auto it = kept.get<Page>("it");
    co_await it.ask<&Page::put>("first");
    {
      const small_files limit(std::filesystem::file_size(file() + "-wal") + 4096);
      auto refused = failure_of(it.ask<&Page::put>(std::string(1 << 20, 'x')));
      const std::optional<failure> kind = co_await std::move(refused);
      EXPECT_TRUE(kind == failure::full || kind == failure::broken);
    }
    auto reads = text_of(kept);
    EXPECT_EQ(co_await std::move(reads), "first");
    EXPECT_EQ(co_await it.ask<&Page::put>(std::string(1 << 20, 'x')), std::size_t{1} << 20);
  });
}

TEST_F(durable_faults, a_damaged_page_is_a_typed_error) {
  run([this](runtime& rt) -> task<> {
    auto opens = open(rt);
    const store kept = co_await std::move(opens);
    for (int i = 0; i < 500; ++i)
      co_await kept.get<Page>(std::to_string(i)).ask<&Page::put>(std::string(200, 'x'));
  });
  {
    const auto size = static_cast<std::streamoff>(std::filesystem::file_size(file()));
    std::fstream damaged(file(), std::ios::in | std::ios::out | std::ios::binary);
    // Whole pages, behind the roots of the tables.
    constexpr std::streamoff page = 4096;
    damaged.seekp((size - 3 * page) / page * page);
    damaged << std::string(2 * page, '\x7f');
  }
  run([this](runtime& rt) -> task<> {
    auto opens = open(rt);
    const store kept = co_await std::move(opens);
    int damaged = 0;
    for (int i = 0; i < 500; ++i) {
      std::optional<failure> kind;
      std::string text;
      try {
        auto asked = kept.get<Page>(std::to_string(i)).ask<&Page::get>();
        text = co_await std::move(asked);
      } catch (const database::error& failed) {
        kind = failed.kind();
      }
      if (kind) {
        EXPECT_EQ(kind, failure::corrupted);
        ++damaged;
      } else {
        EXPECT_TRUE(text == std::string(200, 'x')) << i;
      }
    }
    EXPECT_GT(damaged, 0);
    EXPECT_LT(damaged, 500);
  });
}

TEST_F(durable_faults, a_damaged_state_is_an_error_that_names_the_actor) {
  run([this](runtime& rt) -> task<> {
    auto opens = open(rt);
    const store kept = co_await std::move(opens);
    co_await kept.get<Page>("it").ask<&Page::put>("first");
    co_await kept.get<Page>("other").ask<&Page::put>("second");
  });
  sqlite3* by_hand = nullptr;
  EXPECT_EQ(sqlite3_open(file().c_str(), &by_hand), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(by_hand, "UPDATE durable_state SET value = x'ffffffff' WHERE key = 'it'",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(by_hand);
  run([this](runtime& rt) -> task<> {
    auto opens = open(rt);
    const store kept = co_await std::move(opens);
    std::string said;
    try {
      auto asked = kept.get<Page>("it").ask<&Page::get>();
      co_await std::move(asked);
    } catch (const durable::decode_error& failed) {
      said = failed.what();
    }
    EXPECT_EQ(said.substr(0, said.find(':', 18)), "troupe: durable: Page it cannot be read")
        << said;
    EXPECT_EQ(co_await kept.get<Page>("other").ask<&Page::get>(), "second");
  });
}

TEST_F(durable_faults, a_second_process_takes_the_store) {
  run([this](runtime& rt) -> task<> {
    auto opens = open(rt);
    const store first = co_await std::move(opens);
    co_await first.get<Page>("it").ask<&Page::put>("first");
    auto opens_again = open(rt);
    const store second = co_await std::move(opens_again);
    EXPECT_EQ(co_await second.get<Page>("it").ask<&Page::get>(), "first");
    co_await second.get<Page>("it").ask<&Page::put>("second");
    for (int times = 0; times < 2; ++times) {
      bool taken = false;
      try {
        auto asked = first.get<Page>("it").ask<&Page::put>("of the old one");
        co_await std::move(asked);
      } catch (const durable::store_taken&) {
        taken = true;
      }
      EXPECT_TRUE(taken);
    }
    EXPECT_EQ(co_await second.get<Page>("it").ask<&Page::get>(), "second");
  });
}

TEST(durable_limits, while_the_database_is_away_messages_fail_and_take_no_memory) {
  runtime rt({.policy = policy::simulated, .seed = 3});
  const auto test = [&rt]() -> task<> {
    durable::simulated_database db;
    auto opens = store::open(rt, db.storage(), durable::options(), pages());
    const store kept = co_await std::move(opens);
    const auto it = kept.get<Page>("it");
    co_await it.ask<&Page::put>("first");
    db.set_away(true);
    int refused = 0;
    for (int i = 0; i < 1'000; ++i) {
      auto asked = failure_of(it.post<&Page::put>("second"));
      if (co_await std::move(asked)) ++refused;
    }
    EXPECT_EQ(refused, 1'000);
    EXPECT_EQ(kept.counts().waiting, 0u);
    EXPECT_TRUE(kept.counts().is_away);
    db.set_away(false);
    std::optional<failure> kind;
    do {
      co_await sleep_for(1ms);
      auto asked = failure_of(it.post<&Page::put>("third"));
      kind = co_await std::move(asked);
    } while (kind);
    EXPECT_EQ(co_await it.ask<&Page::get>(), "third");
  };
  future<> done = rt.spawn(test());
  rt.run();
  done.get();
}

TEST(durable_limits, the_answers_to_a_dead_letter_stay_for_the_time_when_it_is_handled_again) {
  struct Asker {
    int asked = 0;
    int tell() { return ++asked; }
    task<> fail(durable::turn& turn) {
      auto asks = turn.ask<&Asker::tell>("other");
      co_await std::move(asks);
      throw std::runtime_error("always");
    }
  };
  runtime rt({.policy = policy::simulated, .seed = 6});
  const auto test = [&rt]() -> task<> {
    durable::simulated_database db;
    durable::options chosen;
    chosen.failures_max = 3;
    auto opens =
        store::open(rt, db.storage(), chosen, durable::kind<Asker, &Asker::tell, &Asker::fail>());
    const store kept = co_await std::move(opens);
    const auto id = durable::message_id::of("poison");
    co_await kept.get<Asker>("it").with_id(id).post<&Asker::fail>();
    co_await sleep_for(10s);
    EXPECT_EQ(co_await kept.get<Asker>("other").ask<&Asker::tell>(), 2);
    const std::string rows = db.dump();
    EXPECT_NE(rows.find("dead Asker it fail: always"), std::string::npos) << rows;
    // That of the message itself, and that of what it has asked.
    const std::size_t first = rows.find("answer ");
    EXPECT_NE(rows.find("answer ", first + 1), std::string::npos) << rows;
  };
  future<> done = rt.spawn(test());
  rt.run();
  done.get();
}

// Its actors cannot be read as long as `away` is set; all else works.
class unreadable final : public durable::storage {
 public:
  unreadable(std::unique_ptr<durable::storage> over, const bool& away)
      : over_(std::move(over)), away_(away) {}
  std::string name() const override { return over_->name(); }
  task<durable::opened_storage> open() override { return over_->open(); }
  task<> keep_classes(std::vector<durable::class_shape> added) override {
    return over_->keep_classes(std::move(added));
  }
  task<std::optional<durable::stored_state>> load(durable::actor_name of) override {
    if (away_) throw database::error(failure::lost, 0, "away");
    return over_->load(std::move(of));
  }
  task<std::vector<std::string>> keys(std::string kind, durable::key_range range) override {
    return over_->keys(std::move(kind), std::move(range));
  }
  task<std::vector<durable::stored_message>> inbox(std::uint64_t after, std::size_t most) override {
    return over_->inbox(after, most);
  }
  task<durable::found_message> find(durable::message_id id) override { return over_->find(id); }
  task<std::vector<durable::stored_reminder>> reminders(std::size_t most) override {
    return over_->reminders(most);
  }
  task<> commit(std::shared_ptr<const durable::batch> all) override {
    return over_->commit(std::move(all));
  }
  task<std::uint64_t> last_batch() override { return over_->last_batch(); }

 private:
  const std::unique_ptr<durable::storage> over_;
  const bool& away_;
};

TEST(durable_limits, a_post_waits_until_its_actor_can_be_read_again) {
  runtime rt({.policy = policy::simulated, .seed = 5});
  const auto test = [&rt]() -> task<> {
    durable::simulated_database db;
    bool away = true;
    auto opens = store::open(rt, std::make_unique<unreadable>(db.storage(), away), pages());
    const store kept = co_await std::move(opens);
    const auto it = kept.get<Page>("it");
    const auto id = durable::message_id::of("of the sender");
    co_await it.with_id(id).post<&Page::put>("posted");
    // Whoever asks for the answer to the post is told that it will be handled, and takes nothing
    // away.
    auto asked = it.with_id(id).ask<&Page::put>("posted");
    std::optional<database::effect> effect;
    try {
      co_await std::move(asked);
    } catch (const database::error& failed) {
      effect = failed.effect();
    }
    EXPECT_EQ(effect, database::effect::unknown);
    co_await sleep_for(std::chrono::minutes(10));
    auto refused = failure_of(it.ask<&Page::get>());
    EXPECT_EQ(co_await std::move(refused), failure::lost);
    away = false;
    co_await sleep_for(std::chrono::minutes(1));
    EXPECT_EQ(co_await it.ask<&Page::get>(), "posted");
  };
  future<> done = rt.spawn(test());
  rt.run();
  done.get();
}

TEST(durable_limits, messages_beyond_the_limit_are_refused_and_those_of_handlers_are_not) {
  struct Source {
    int sent = 0;
    int got = 0;
    void send(durable::turn& turn, int count) {
      for (int i = 0; i < count; ++i) turn.post<&Source::take>("sink", i);
      sent = count;
    }
    void take(int number) {
      EXPECT_EQ(number, got);
      ++got;
    }
    int taken() const { return got; }
  };
  runtime rt({.policy = policy::simulated, .seed = 4});
  const auto test = [&rt]() -> task<> {
    durable::simulated_database db;
    durable::options chosen;
    chosen.waiting_max = 10;
    auto opens = store::open(rt, db.storage(), chosen,
                             durable::kind<Source, &Source::send, &Source::take, &Source::taken>());
    const store kept = co_await std::move(opens);
    std::vector<future<int>> asks;
    for (int i = 0; i < 11; ++i)
      asks.push_back(kept.get<Source>(std::to_string(i)).ask<&Source::taken>());
    int refused = 0;
    for (auto& one : asks) {
      try {
        co_await std::move(one);
      } catch (const durable::store_full&) {
        ++refused;
      }
    }
    EXPECT_EQ(refused, 1);
    co_await kept.get<Source>("source").ask<&Source::send>(1'000);
    EXPECT_LE(kept.counts().waiting, 20u);
    auto sink = kept.get<Source>("sink");
    int taken = 0;
    while (taken < 1'000) {
      try {
        auto asked = sink.ask<&Source::taken>();
        taken = co_await std::move(asked);
      } catch (const durable::store_full&) {
        // There is room again when some have been handled.
      }
      co_await sleep_for(100us);
    }
    EXPECT_EQ(taken, 1'000);
  };
  future<> done = rt.spawn(test());
  rt.run();
  done.get();
}

// For the thread sanitizer: on several threads handlers end while the store forgets what it had.
struct Busy {
  int count = 0;
  void add(durable::turn& turn, int further) {
    ++count;
    if (further > 0) turn.post<&Busy::add>(std::to_string(count % 7), further - 1);
  }
  task<int> ask_last(durable::turn& turn, bool is_last) {
    if (!is_last) {
      auto asked = turn.ask<&Busy::ask_last>("last", true);
      co_await std::move(asked);
    }
    co_await sleep_for(200us);
    co_return ++count;
  }
};
task<> busy_client(store with, int number) {
  for (int i = 0; i < 100; ++i) {
    const auto id = durable::message_id::of(std::to_string(number) + "." + std::to_string(i / 2));
    const auto one = with.get<Busy>(std::to_string(i % 5)).with_id(id);
    static_cast<void>(one.ask<&Busy::ask_last>(false));
    try {
      auto posted = one.post<&Busy::add>(2);
      co_await std::move(posted);
    } catch (const error&) {
      // The database is away.
    }
    if (i % 8 == 0) co_await sleep_for(500us);
  }
}
task<> come_and_go(durable::simulated_database db) {
  for (int i = 0; i < 100; ++i) {
    db.set_away(i % 2 == 0);
    co_await sleep_for(i % 2 == 0 ? 1ms : 5ms);
  }
}

struct Depot {
  int got = 0;
  void send(durable::turn& turn, int count) {
    for (int i = 0; i < count; ++i) turn.post<&Depot::take>("sink", i, std::string(1'000, 'x'));
  }
  void take(int number, std::string) {
    EXPECT_EQ(number, got);
    ++got;
  }
  std::size_t weigh(std::string what) { return what.size(); }
  int taken() const { return got; }
};

// A kilobyte each, and 10 of them.
task<> fill_depots(runtime& rt) {
  durable::simulated_database db;
  durable::options chosen;
  chosen.waiting_bytes_max = 10'000;
  auto opens =
      store::open(rt, db.storage(), chosen,
                  durable::kind<Depot, &Depot::send, &Depot::take, &Depot::weigh, &Depot::taken>());
  const store kept = co_await std::move(opens);
  std::vector<future<std::size_t>> asks;
  for (int i = 0; i < 11; ++i)
    asks.push_back(kept.get<Depot>(std::to_string(i)).ask<&Depot::weigh>(std::string(1'000, 'x')));
  int refused = 0;
  for (auto& one : asks) {
    try {
      co_await std::move(one);
    } catch (const durable::store_full&) {
      ++refused;
    }
  }
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(kept.counts().waiting, 0u);
  co_await kept.get<Depot>("source").ask<&Depot::send>(1'000);
  EXPECT_LE(kept.counts().waiting, 20u);
  auto sink = kept.get<Depot>("sink");
  int taken = 0;
  while (taken < 1'000) {
    try {
      auto asked = sink.ask<&Depot::taken>();
      taken = co_await std::move(asked);
    } catch (const durable::store_full&) {
      // There is room again when some have been handled.
    }
    co_await sleep_for(100us);
  }
}

TEST(durable_limits, bytes_beyond_the_limit_are_refused_and_those_of_handlers_are_not) {
  runtime rt({.policy = policy::simulated, .seed = 4});
  future<> done = rt.spawn(fill_depots(rt));
  rt.run();
  done.get();
}

TEST(durable_limits, a_database_that_comes_and_goes_beside_many_threads) {
  runtime rt({.workers = 4});
  const auto test = [&rt]() -> task<> {
    durable::simulated_database db;
    durable::options chosen;
    chosen.away_first = 1ms;
    chosen.waiting_max = 50;
    auto opens =
        store::open(rt, db.storage(), chosen, durable::kind<Busy, &Busy::add, &Busy::ask_last>());
    const store kept = co_await std::move(opens);
    std::vector<future<>> all;
    for (int number = 0; number < 6; ++number) all.push_back(rt.spawn(busy_client(kept, number)));
    all.push_back(rt.spawn(come_and_go(db)));
    for (auto& one : all) co_await std::move(one);
    EXPECT_FALSE(kept.counts().turns == 0);
  };
  future<> done = rt.spawn(test());
  rt.run();
  done.get();
}

}  // namespace
}  // namespace troupe::test
