// cache: who loads, what is kept, and for how long.
#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

struct text {
  explicit text(std::string is) : words(std::move(is)) {}
  std::string words;
  counted alive{};
};

// Loads values, each of which takes some turns, and counts the loads.
struct source {
  std::atomic<int> loads{0};
  std::atomic<int> failures{0};  // so many loads fail from now on
  std::atomic<int> turns{3};

  task<text> load(const int& key) {
    const int number = ++loads;
    for (int i = 0; i < turns; ++i) co_await yield();
    if (failures > 0) {
      --failures;
      throw std::runtime_error("failure " + std::to_string(number));
    }
    co_return text(std::to_string(key) + "/" + std::to_string(number));
  }
};

using texts = cache<int, text>;

class caches : public conformance {
 protected:
  void in_task(task<> one) {
    runtime rt(options());
    future<> later = rt.spawn(std::move(one));
    rt.run();
    later.get();
  }
  void TearDown() override {
    EXPECT_EQ(live, 0) << "each value is destroyed, once";
    live = 0;
    conformance::TearDown();
  }
  auto loader() {
    return [this](const int& key) { return from.load(key); };
  }
  static task<std::string> words(texts of, int key) {
    const text got = co_await of.get(key);
    co_return got.words;
  }
  source from;
};

TEST_P(caches, a_value_is_loaded_once) {
  const texts all({}, loader());
  const auto uses = [&]() -> task<> {
    for (int i = 0; i < 5; ++i) EXPECT_EQ(co_await words(all, 7), "7/1");
    EXPECT_EQ(co_await words(all, 8), "8/2");
  };
  in_task(uses());
  EXPECT_EQ(from.loads, 2);
  EXPECT_EQ(all.counts().entries, 2u);
  EXPECT_EQ(all.counts().hits, 4u);
  EXPECT_EQ(all.counts().misses, 2u);
  EXPECT_EQ(all.counts().loads, 2u);
}

TEST_P(caches, a_load_may_be_an_ordinary_function) {
  const cache<std::string, std::size_t> sizes({},
                                              [](const std::string& key) { return key.size(); });
  const auto uses = [&]() -> task<> { EXPECT_EQ(co_await sizes.get("four"), 4u); };
  in_task(uses());
  EXPECT_EQ(sizes.find("four"), 4u);
  EXPECT_EQ(sizes.find("five"), std::nullopt);
}

TEST_P(caches, those_who_come_together_share_a_load) {
  const texts all({}, loader());
  std::atomic<int> served{0};
  runtime rt(options());
  const auto uses = [&](int key) -> task<> {
    const std::string got = co_await words(all, key);
    EXPECT_EQ(got.substr(0, 2), std::to_string(key) + "/");
    ++served;
  };
  for (int i = 0; i < 60; ++i) rt.spawn(uses(i % 3));
  rt.run();
  EXPECT_EQ(served, 60);
  EXPECT_EQ(from.loads, 3);
  const cache_counts seen = all.counts();
  EXPECT_EQ(seen.hits + seen.misses, 60u);
  EXPECT_EQ(seen.joined, seen.misses - 3);
}

TEST_P(caches, the_next_one_loads_when_the_loader_is_cancelled) {
  const texts all({}, loader());
  from.turns = 20;
  const auto uses = [&]() -> task<> {
    const auto gives_up = [&]() -> task<> { co_await words(all, 7); };
    const auto ends = []() -> task<> {
      for (int i = 0; i < 5; ++i) co_await yield();
    };
    const auto leads = [&]() -> task<> {
      auto any = when_any(gives_up(), ends());
      co_await std::move(any);
    };
    const auto follows = [&]() -> task<> { EXPECT_EQ(co_await words(all, 7), "7/2"); };
    co_await when_all(leads(), follows(), follows());
  };
  in_task(uses());
  EXPECT_EQ(from.loads, 2);
  EXPECT_EQ(all.counts().loads, 2u);
  EXPECT_EQ(all.counts().failed, 0u);
}

TEST_P(caches, the_next_one_loads_when_the_loaders_time_is_over) {
  std::atomic<int> loads{0};
  event first_began, second_began;
  const cache<int, int> all({}, [&](const int& key) -> task<int> {
    if (++loads == 1) {
      (key == 7 ? first_began : second_began).set();
      co_await sleep_for(1h);
    }
    co_return key;
  });
  const auto uses = [&]() -> task<> {
    // On a slow machine the time may be over before the load begins: then once more.
    const auto leads = [&]() -> task<> {
      while (loads == 0)
        EXPECT_THROW(static_cast<void>(co_await all.get(7).timeout(2ms)), timed_out);
    };
    const auto leads_within = [&]() -> task<> {
      const auto gets = [&]() -> task<int> { co_return co_await all.get(8); };
      while (loads == 0)
        EXPECT_THROW(static_cast<void>(co_await with_deadline(2ms, gets)), timed_out);
    };
    const auto follows = [&](int key) -> task<> {
      event& began = key == 7 ? first_began : second_began;
      co_await began.wait();
      EXPECT_EQ(co_await all.get(key), key);
    };
    co_await when_all(leads(), follows(7), follows(7));
    loads = 0;
    co_await when_all(leads_within(), follows(8), follows(8));
  };
  in_task(uses());
  EXPECT_EQ(loads, 2);
}

TEST_P(caches, a_wait_for_anothers_load_ends_with_its_time_or_its_token) {
  std::stop_source stop;
  event both_have_ended;
  const cache<int, int> all({}, [&](const int& key) -> task<int> {
    co_await both_have_ended.wait();
    co_return key;
  });
  const auto uses = [&]() -> task<> {
    const auto leads = [&]() -> task<> { EXPECT_EQ(co_await all.get(7), 7); };
    const auto limited = [&]() -> task<> {
      EXPECT_THROW(static_cast<void>(co_await all.get(7).timeout(1ms)), timed_out);
      stop.request_stop();
    };
    const auto stopped = [&]() -> task<> {
      EXPECT_THROW(static_cast<void>(co_await all.get(7).stop(stop.get_token())), cancelled);
      both_have_ended.set();
    };
    co_await when_all(leads(), limited(), stopped());
  };
  in_task(uses());
  EXPECT_EQ(all.counts().loads, 1u);
}

TEST_P(caches, a_failure_is_for_all_who_wait_and_not_kept) {
  const texts all({}, loader());
  from.failures = 1;
  const auto uses = [&]() -> task<> {
    const auto fails = [&]() -> task<> {
      try {
        co_await words(all, 7);
        ADD_FAILURE() << "it was loaded";
      } catch (const std::runtime_error& failed) {
        EXPECT_STREQ(failed.what(), "failure 1");
      }
    };
    co_await when_all(fails(), fails(), fails());
    EXPECT_EQ(co_await words(all, 7), "7/2");
  };
  in_task(uses());
  EXPECT_EQ(all.counts().failed, 1u);
}

TEST_P(caches, a_failure_is_kept_where_that_is_wanted) {
  const texts all({.keep_failures = 1h}, loader());
  const texts briefly({.keep_failures = 5ms}, loader());
  from.failures = 1;
  const auto uses = [&]() -> task<> {
    for (int i = 0; i < 3; ++i) EXPECT_THROW(co_await words(all, 7), std::runtime_error);
    EXPECT_EQ(from.loads, 1);
    EXPECT_FALSE(all.find(7).has_value());
    all.put(7, text("put"));
    EXPECT_EQ(co_await words(all, 7), "put");
    from.failures = 1;
    EXPECT_THROW(co_await words(briefly, 7), std::runtime_error);
    co_await sleep_for(10ms);
    EXPECT_EQ(co_await words(briefly, 7), "7/3");
  };
  in_task(uses());
}

TEST_P(caches, an_entry_expires_after_it_was_written) {
  const texts all({.expire_after_write = 20ms}, loader());
  const auto uses = [&]() -> task<> {
    co_await words(all, 7);
    const bool kept = all.find(7).has_value();
    EXPECT_TRUE(kept || !simulated());
    for (int i = 0; i < 5; ++i) {
      co_await sleep_for(5ms);
      static_cast<void>(all.find(7));  // a use does not help
    }
    EXPECT_FALSE(all.find(7).has_value());
    EXPECT_EQ(co_await words(all, 7), "7/2");
  };
  in_task(uses());
  EXPECT_EQ(all.counts().expired, 1u);
}

TEST_P(caches, an_entry_expires_after_its_last_use) {
  const texts all({.expire_after_access = 40ms}, loader());
  const auto uses = [&]() -> task<> {
    co_await words(all, 7);
    co_await words(all, 8);
    for (int i = 0; i < 10; ++i) {
      co_await sleep_for(5ms);
      EXPECT_TRUE(all.find(7).has_value() || !simulated());
    }
    EXPECT_FALSE(all.find(8).has_value());
    co_await sleep_for(41ms);
    EXPECT_FALSE(all.find(7).has_value());
    EXPECT_EQ(co_await words(all, 9), "9/3");
    co_await sleep_for(41ms);
    EXPECT_EQ(all.counts().entries, 1u);
    EXPECT_EQ(live, 1);
    all.drop_expired();
    EXPECT_EQ(all.counts().entries, 0u);
    EXPECT_EQ(live, 0);
  };
  in_task(uses());
  EXPECT_EQ(all.counts().expired, 3u);
}

TEST_P(caches, the_entry_that_was_used_least_recently_goes_first) {
  const texts all({.entries_max = 3}, loader());
  const auto uses = [&]() -> task<> {
    for (const int key : {1, 2, 3}) co_await words(all, key);
    EXPECT_TRUE(all.find(1).has_value());
    co_await words(all, 4);
    EXPECT_FALSE(all.find(2).has_value());
    EXPECT_TRUE(all.find(1).has_value());
    EXPECT_TRUE(all.find(3).has_value());
    EXPECT_EQ(live, 3);
    EXPECT_EQ(all.counts().entries, 3u);
    EXPECT_EQ(all.counts().evicted, 1u);
  };
  in_task(uses());
}

TEST_P(caches, what_is_erased_during_its_load_is_not_stored) {
  const texts all({}, loader());
  const auto uses = [&]() -> task<> {
    from.turns = 20;
    const auto gets = [&]() -> task<> { EXPECT_EQ(co_await words(all, 7), "7/1"); };
    const auto erases = [&]() -> task<> {
      while (all.counts().loads == 0) co_await yield();
      EXPECT_FALSE(all.erase(7));
      EXPECT_EQ(co_await words(all, 7), "7/2");
    };
    co_await when_all(gets(), erases());
    EXPECT_EQ(co_await words(all, 7), "7/2");
    const auto gets_other = [&]() -> task<> { EXPECT_EQ(co_await words(all, 8), "8/3"); };
    const auto puts = [&]() -> task<> {
      while (all.counts().loads < 3) co_await yield();
      all.put(8, text("put"));
    };
    co_await when_all(gets_other(), puts());
    EXPECT_EQ(co_await words(all, 8), "put");
    EXPECT_TRUE(all.erase(8));
    EXPECT_FALSE(all.find(8).has_value());
    all.clear();
    EXPECT_EQ(all.counts().entries, 0u);
  };
  in_task(uses());
}

TEST_P(caches, parties_that_give_up_lose_nothing) {
  const texts all({.entries_max = 2, .keep_failures = 1ns}, loader());
  std::atomic<int> served{0};
  runtime rt(options());
  const auto gives_up = [&](int number) -> task<> {
    for (int i = 0; i < 30; ++i) {
      const auto gets = [&]() -> task<> {
        const std::string got = co_await words(all, (number + i) % 5);
        EXPECT_EQ(got.at(0), static_cast<char>('0' + (number + i) % 5));
        ++served;
      };
      const auto ends = [](int turns) -> task<> {
        for (int n = 0; n < turns; ++n) co_await yield();
      };
      auto any = when_any(gets(), ends(i % 9));
      co_await std::move(any);
      if (i % 7 == 0) all.erase(number % 5);
    }
  };
  for (int i = 0; i < 12; ++i) rt.spawn(gives_up(i));
  rt.run();
  EXPECT_GT(served, 0);
  EXPECT_LE(all.counts().entries, 2u);
  EXPECT_LE(live, 2);
}

TEST_P(caches, a_runtime_may_end_while_parties_wait) {
  const cache<int, int> all({}, [](const int& key) -> task<int> {
    co_await sleep_for(1h);
    co_return key;
  });
  const auto waits = [&]() -> task<> { co_await all.get(7); };
  {
    runtime rt(options());
    for (int n = 0; n < 6; ++n) rt.spawn(waits());
    if (threaded()) {
      while (all.counts().joined < 5) std::this_thread::yield();
    } else {
      while (all.counts().joined < 5 && rt.poll()) {
      }
    }
  }
  if (!threaded()) all.clear();  // virtual time may have passed
  const auto others = [&]() -> task<> {
    EXPECT_THROW(static_cast<void>(co_await all.get(7).timeout(1ms)), timed_out);
  };
  in_task(others());
}

TEST_P(caches, options_that_make_no_sense_are_refused) {
  const auto load = [](int key) { return key; };
  using made = cache<int, int>;
  EXPECT_THROW(made({.entries_max = 0}, load), option_error);
  EXPECT_THROW(made({.expire_after_write = 0ns}, load), option_error);
  EXPECT_THROW(made({.expire_after_access = -1ns}, load), option_error);
  EXPECT_THROW(made({.keep_failures = -1ns}, load), option_error);
}

TROUPE_TEST_EACH(caches, all_settings);

}  // namespace
}  // namespace troupe::test
