// The tests of a store of durable actors: state and mail survive, and each message has its effect
// once. A program that includes them says where they store.
#pragma once

#include "troupe/durable/store.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "support/conformance.hpp"
#include "support/scratch.hpp"

namespace troupe::test {

// The program's own: an empty place for one test, by its name, and a storage there.
std::string make_place(const scratch& folder);
std::unique_ptr<durable::storage> storage_at(const std::string& place, runtime& rt);

namespace {

using namespace std::chrono_literals;
using durable::kind;
using durable::store;

struct Account {
  std::int64_t cents = 0;
  std::vector<std::string> lines;

  std::int64_t deposit(std::int64_t amount) { return cents += amount; }
  void note(std::string line) { lines.push_back(std::move(line)); }
  std::vector<std::string> all_lines() const { return lines; }
  std::int64_t balance() const { return cents; }
  void refuse(std::string why) {
    cents = -1;
    throw std::invalid_argument(why);
  }
  void pay(durable::turn& turn, std::string to, std::int64_t amount) {
    if (amount > cents) throw std::runtime_error("not enough money");
    cents -= amount;
    turn.post<&Account::deposit>(to, amount);
  }
  task<std::int64_t> take_from(durable::turn& turn, std::string from, std::int64_t amount) {
    auto taken = turn.ask<&Account::withdraw>(from, amount);
    cents += co_await std::move(taken);
    co_return cents;
  }
  std::int64_t withdraw(std::int64_t amount) {
    if (amount > cents) throw std::runtime_error("not enough money");
    cents -= amount;
    return amount;
  }
  task<> ask_back(durable::turn& turn, std::string whom) {
    auto asked = turn.ask<&Account::ask_back>(whom, turn.key());
    co_await std::move(asked);
  }
};

auto accounts() {
  return kind<Account, &Account::deposit, &Account::note, &Account::all_lines, &Account::balance,
              &Account::refuse, &Account::pay, &Account::take_from, &Account::withdraw,
              &Account::ask_back>();
}

class durable_stores : public conformance {
 protected:
  // Runs test(store) as a task, in a program of its own.
  template <class Test, class... Kinds>
  void with(Test test, durable::options chosen, Kinds... kinds) {
    runtime rt(options());
    auto all = [&]() -> task<> {
      auto opens = store::open(rt, storage_at(place_, rt), chosen, std::move(kinds)...);
      store opened = co_await std::move(opens);
      auto runs = test(std::move(opened));
      co_await std::move(runs);
    };
    future<> done = rt.spawn(all());
    rt.run();
    done.get();
  }
  template <class Test>
  void with(Test test, durable::options chosen = {}) {
    with(std::move(test), chosen, accounts());
  }

  void SetUp() override {
    conformance::SetUp();
    if (!IsSkipped()) place_ = make_place(folder_);
  }
  scratch folder_;
  std::string place_;
};

template <class Error, class Call>
task<std::string> error_of(Call call) {
  try {
    co_await std::move(call);
  } catch (const Error& failed) {
    co_return failed.what();
  }
  co_return "none";
}

TEST_P(durable_stores, state_survives_the_program) {
  with([](store bank) -> task<> {
    auto alice = bank.get<Account>("alice");
    EXPECT_EQ(co_await alice.ask<&Account::deposit>(100), 100);
    EXPECT_EQ(co_await alice.ask<&Account::deposit>(20), 120);
    EXPECT_EQ(co_await bank.get<Account>("bob").ask<&Account::balance>(), 0);
  });
  with([](store bank) -> task<> {
    EXPECT_EQ(co_await bank.get<Account>("alice").ask<&Account::balance>(), 120);
  });
}

TEST_P(durable_stores, posts_are_handled_in_order) {
  with([](store bank) -> task<> {
    auto alice = bank.get<Account>("alice");
    for (int i = 0; i < 20; ++i) co_await alice.post<&Account::note>(std::to_string(i));
    const auto lines = co_await alice.ask<&Account::all_lines>();
    EXPECT_EQ(lines.size(), 20u);
    for (std::size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i], std::to_string(i));
  });
}

TEST_P(durable_stores, what_a_handler_that_throws_has_done_is_rolled_back) {
  with([](store bank) -> task<> {
    auto alice = bank.get<Account>("alice");
    co_await alice.ask<&Account::deposit>(7);
    auto refused = alice.ask<&Account::refuse>("no reason");
    std::string type;
    try {
      co_await std::move(refused);
    } catch (const durable::handler_failed& failed) {
      type = failed.type();
      EXPECT_STREQ(failed.what(), "no reason");
    }
    EXPECT_EQ(type, "std::invalid_argument");
    EXPECT_EQ(co_await alice.ask<&Account::balance>(), 7);
    EXPECT_EQ(co_await error_of<durable::handler_failed>(alice.ask<&Account::pay>("bob", 8)),
              "not enough money");
    EXPECT_EQ(co_await bank.get<Account>("bob").ask<&Account::balance>(), 0);
  });
  with([](store bank) -> task<> {
    EXPECT_EQ(co_await bank.get<Account>("alice").ask<&Account::balance>(), 7);
  });
}

TEST_P(durable_stores, handlers_send_to_others) {
  with([](store bank) -> task<> {
    auto alice = bank.get<Account>("alice");
    co_await alice.ask<&Account::deposit>(50);
    co_await alice.ask<&Account::pay>("bob", 20);
    EXPECT_EQ(co_await bank.get<Account>("carol").ask<&Account::take_from>("alice", 5), 5);
    EXPECT_EQ(co_await alice.ask<&Account::balance>(), 25);
  });
  with([](store bank) -> task<> {
    EXPECT_EQ(co_await bank.get<Account>("alice").ask<&Account::balance>(), 25);
    EXPECT_EQ(co_await bank.get<Account>("bob").ask<&Account::balance>(), 20);
    EXPECT_EQ(co_await bank.get<Account>("carol").ask<&Account::balance>(), 5);
  });
}

TEST_P(durable_stores, an_ask_that_would_wait_for_itself_is_refused) {
  with([](store bank) -> task<> {
    auto asked = bank.get<Account>("alice").ask<&Account::ask_back>("bob");
    std::string type, text;
    try {
      co_await std::move(asked);
    } catch (const durable::handler_failed& refused) {
      type = refused.type();
      text = refused.what();
    }
    EXPECT_EQ(type, "troupe::deadlock");
    EXPECT_NE(text.find("this ask would wait for itself: Account bob asks Account alice asks "
                        "Account bob"),
              std::string::npos)
        << text;
  });
}

TEST_P(durable_stores, an_id_of_the_sender_is_handled_once) {
  const auto id = durable::message_id::of("order 17");
  with([id](store bank) -> task<> {
    auto alice = bank.get<Account>("alice");
    EXPECT_EQ(co_await alice.with_id(id).ask<&Account::deposit>(10), 10);
    EXPECT_EQ(co_await alice.ask<&Account::deposit>(1), 11);
    EXPECT_EQ(co_await alice.with_id(id).ask<&Account::deposit>(10), 10);
    co_await alice.with_id(id).post<&Account::deposit>(10);
    auto first = alice.with_id(durable::message_id::of("18")).ask<&Account::deposit>(100);
    auto second = alice.with_id(durable::message_id::of("18")).ask<&Account::deposit>(100);
    EXPECT_EQ(co_await std::move(first), 111);
    EXPECT_EQ(co_await std::move(second), 111);
    // The same id for another actor is another message.
    EXPECT_EQ(co_await bank.get<Account>("bob").with_id(id).ask<&Account::deposit>(3), 3);
  });
  with([id](store bank) -> task<> {
    auto alice = bank.get<Account>("alice");
    EXPECT_EQ(co_await alice.with_id(id).ask<&Account::deposit>(10), 10);
    EXPECT_EQ(co_await alice.ask<&Account::balance>(), 111);
  });
}

// The id of a message is used again: for another method, for other arguments, and as a post.
task<> expect_mismatches(durable::ref<Account> once) {
  EXPECT_NE(co_await error_of<durable::id_mismatch>(once.ask<&Account::withdraw>(10)), "none");
  EXPECT_NE(co_await error_of<durable::id_mismatch>(once.ask<&Account::deposit>(11)), "none");
  EXPECT_NE(co_await error_of<durable::id_mismatch>(once.ask<&Account::balance>()), "none");
  EXPECT_NE(co_await error_of<durable::id_mismatch>(once.post<&Account::note>("10")), "none");
}

TEST_P(durable_stores, an_id_stands_for_one_method_with_its_arguments) {
  const auto id = durable::message_id::of("order 17");
  with([id](store bank) -> task<> {
    auto alice = bank.get<Account>("alice");
    auto once = alice.with_id(id);
    // In memory: the first one is looked up in the database, and the second one waits for that.
    auto first = once.ask<&Account::deposit>(10);
    auto other = once.ask<&Account::deposit>(11);
    auto same = once.ask<&Account::deposit>(10);
    EXPECT_EQ(co_await std::move(first), 10);
    EXPECT_EQ(co_await std::move(same), 10);
    EXPECT_NE(co_await error_of<durable::id_mismatch>(std::move(other)), "none");
    // Answered.
    auto answered = expect_mismatches(once);
    co_await std::move(answered);
    // A failure that changed nothing is not kept, and the id is free again.
    auto failing = alice.with_id(durable::message_id::of("18"));
    EXPECT_NE(co_await error_of<durable::handler_failed>(failing.ask<&Account::withdraw>(99)),
              "none");
    EXPECT_EQ(co_await failing.ask<&Account::withdraw>(1), 1);
    // A wrong repetition beside the right one, whose answer is stored.
    auto wrong = once.ask<&Account::withdraw>(10);
    auto right = once.ask<&Account::deposit>(10);
    EXPECT_EQ(co_await std::move(right), 10);
    EXPECT_NE(co_await error_of<durable::id_mismatch>(std::move(wrong)), "none");
    EXPECT_EQ(co_await alice.ask<&Account::balance>(), 9);
    EXPECT_EQ(bank.counts().waiting, 0u);
  });
  with([id](store bank) -> task<> {
    auto alice = bank.get<Account>("alice");
    auto restarted = expect_mismatches(alice.with_id(id));
    co_await std::move(restarted);
    EXPECT_EQ(co_await alice.with_id(id).ask<&Account::deposit>(10), 10);
    EXPECT_EQ(co_await alice.ask<&Account::balance>(), 9);
  });
}

enum class Colour : std::uint8_t { red, green, blue };
enum class Reordered : std::uint8_t { green, red, blue };
enum class Shorter : std::uint8_t { red, green };
enum class Longer : std::uint8_t { red, green, blue, black };
struct Started {};
struct Stopped {};

template <class C, class... States>
struct Lamp_of {
  C colour{};
  std::variant<States...> state{};
  void paint(C to) { colour = to; }
  int number() const { return static_cast<int>(colour) + 10 * static_cast<int>(state.index()); }
};
template <class C, class... States>
auto lamps() {
  using lamp = Lamp_of<C, States...>;
  return kind<lamp, &lamp::paint, &lamp::number>("Painted");
}

TEST_P(durable_stores, enumerators_and_alternatives_are_part_of_a_schema) {
  const auto nothing = [](store) -> task<> { co_return; };
  using lamp = Lamp_of<Colour, Started, Stopped>;
  with(
      [](store all) -> task<> {
        co_await all.get<lamp>("a").template ask<&lamp::paint>(Colour::blue);
      },
      durable::options(), lamps<Colour, Started, Stopped>());
  const auto refused = [&](auto kinds) {
    EXPECT_THROW(with(nothing, durable::options(), kinds), durable::schema_error);
  };
  refused(lamps<Reordered, Started, Stopped>());
  refused(lamps<Shorter, Started, Stopped>());
  refused(lamps<Colour, Stopped, Started>());
  // Added enumerators leave what is stored as it is; then the shorter list is too short.
  using longer = Lamp_of<Longer, Started, Stopped>;
  with(
      [](store all) -> task<> {
        EXPECT_EQ(co_await all.get<longer>("a").template ask<&longer::number>(), 2);
      },
      durable::options(), lamps<Longer, Started, Stopped>());
  refused(lamps<Colour, Started, Stopped>());
}

// What a message takes is stored as well: the state of this class has no enumeration.
template <class C>
struct Painter_of {
  int last = 0;
  void paint(C to) { last = static_cast<int>(to); }
};
TEST_P(durable_stores, enumerators_are_part_of_a_method) {
  const auto nothing = [](store) -> task<> { co_return; };
  const auto painters = []<class C>(C) {
    return kind<Painter_of<C>, &Painter_of<C>::paint>("Painter");
  };
  with(nothing, durable::options(), painters(Colour()));
  EXPECT_THROW(with(nothing, durable::options(), painters(Reordered())), durable::schema_error);
  with(nothing, durable::options(), painters(Longer()));
}

TEST_P(durable_stores, poison_goes_to_the_dead_letters) {
  durable::options chosen;
  chosen.failures_max = 3;
  chosen.retry_first = 1ms;
  with(
      [](store bank) -> task<> {
        auto alice = bank.get<Account>("alice");
        co_await alice.post<&Account::refuse>("poison");
        co_await alice.post<&Account::deposit>(4);
        EXPECT_EQ(co_await alice.ask<&Account::balance>(), 4);
        EXPECT_EQ(bank.counts().dead_letters, 1u);
        EXPECT_EQ(bank.counts().failed_turns, 3u);
      },
      chosen);
}

TEST_P(durable_stores, actors_are_put_away_and_come_back) {
  durable::options chosen;
  chosen.actors_max = 10;
  with(
      [](store bank) -> task<> {
        for (int round = 1; round <= 2; ++round) {
          for (int i = 0; i < 100; ++i) {
            auto one = bank.get<Account>("a" + std::to_string(i));
            EXPECT_EQ(co_await one.ask<&Account::deposit>(1), round);
          }
        }
        EXPECT_LE(bank.counts().actors, 12u);
        EXPECT_GE(bank.counts().unloaded, 180u);
      },
      chosen);
}

TEST_P(durable_stores, many_turns_share_a_transaction) {
  with([](store bank) -> task<> {
    std::vector<future<std::int64_t>> all;
    for (int i = 0; i < 1000; ++i)
      all.push_back(bank.get<Account>("a" + std::to_string(i % 100)).ask<&Account::deposit>(1));
    for (auto& one : all) co_await std::move(one);
    EXPECT_EQ(bank.counts().turns, 1000u);
    EXPECT_LT(bank.counts().commits, 500u);
  });
}

// Its handlers wait for the test, by a blocking call or as coroutines; each answers its place among
// all.
struct Held {
  static inline std::atomic<bool> is_held = false;
  static inline std::atomic<int> handled = 0;

  int work() {
    while (is_held) std::this_thread::sleep_for(1ms);  // sleeps: until the test has sent all
    return ++handled;
  }
  task<int> wait() {
    while (is_held) co_await sleep_for(1ms);
    co_return ++handled;
  }
  int look() const { return handled; }
};
auto held() { return kind<Held, &Held::work, &Held::wait, &Held::look>(); }

TEST_P(durable_stores, actors_with_many_messages_let_others_in) {
  Held::is_held = false;
  with(
      [](store all) -> task<> {
        constexpr int busy = 10, messages_each = 500;
        std::vector<durable::ref<Held>> actors;
        for (int i = 0; i <= busy; ++i) {
          actors.push_back(all.get<Held>(std::to_string(i)));
          co_await actors.back().ask<&Held::work>();  // it is in memory from now on
        }
        Held::is_held = true;
        Held::handled = 0;
        std::vector<future<int>> answers;
        for (int i = 0; i < busy; ++i) {
          for (int n = 0; n < messages_each; ++n)
            answers.push_back(actors[static_cast<std::size_t>(i)].ask<&Held::work>());
        }
        auto last = actors.back().ask<&Held::work>();
        Held::is_held = false;
        EXPECT_LT(co_await std::move(last), busy * messages_each / 2);
        for (auto& answer : answers) co_await std::move(answer);
        EXPECT_EQ(Held::handled, busy * messages_each + 1);
      },
      {}, held());
}

TEST_P(durable_stores, handlers_that_wait_hold_no_other_up) {
  Held::is_held = false;
  with(
      [](store all) -> task<> {
        Held::is_held = true;
        Held::handled = 0;
        std::vector<future<int>> answers;
        for (int i = 0; i < 40; ++i)
          answers.push_back(all.get<Held>(std::to_string(i)).ask<&Held::wait>());
        for (int i = 0; i < 3; ++i)
          EXPECT_EQ(co_await all.get<Held>("other").ask<&Held::look>(), 0);
        Held::is_held = false;
        for (auto& answer : answers) co_await std::move(answer);
        EXPECT_EQ(Held::handled, 40);
      },
      {}, held());
}

struct Thing {
  int number = 0;
  void set(int to) { number = to; }
};
struct OtherThing {
  std::string number;
  void set(int) {}
};
struct OldThing {
  int number = 0;
};
struct NewThing {
  static constexpr int schema = 2;
  using previous = OldThing;
  static NewThing upgrade(OldThing old) { return {old.number, "from before"}; }
  std::int64_t number = 0;
  std::string text;
  std::string show() const { return std::to_string(number) + " " + text; }
  void set(int to) { number = to; }
};

TEST_P(durable_stores, an_old_schema_is_upgraded_and_a_changed_one_refused) {
  with([](store things) -> task<> { co_await things.get<Thing>("it").ask<&Thing::set>(5); },
       durable::options(), kind<Thing, &Thing::set>("Thing"));
  EXPECT_THROW(with([](store) -> task<> { co_return; }, durable::options(),
                    kind<OtherThing, &OtherThing::set>("Thing")),
               durable::schema_error);
  with(
      [](store things) -> task<> {
        auto it = things.get<NewThing>("it");
        EXPECT_EQ(co_await it.ask<&NewThing::show>(), "5 from before");
        co_await it.ask<&NewThing::set>(6);
      },
      durable::options(), kind<NewThing, &NewThing::show, &NewThing::set>("Thing"));
  // The older program says what it cannot read, and leaves it as it is.
  with(
      [](store things) -> task<> {
        auto asked = things.get<Thing>("it").ask<&Thing::set>(7);
        const std::string text = co_await error_of<durable::schema_error>(std::move(asked));
        EXPECT_NE(text.find("schema number 2"), std::string::npos) << text;
      },
      durable::options(), kind<Thing, &Thing::set>("Thing"));
  with(
      [](store things) -> task<> {
        EXPECT_EQ(co_await things.get<NewThing>("it").ask<&NewThing::show>(), "6 from before");
      },
      durable::options(), kind<NewThing, &NewThing::show, &NewThing::set>("Thing"));
}

struct Counter {
  using event = int;
  static constexpr std::uint64_t events_between_snapshots = 10;
  std::int64_t sum = 0;
  void apply(const int& by) { sum += by; }
  durable::changes<int, std::int64_t> add(int by) const { return {sum + by, {by}}; }
  durable::changes<int> add_twice(int by) const { return {{by, by}}; }
  std::int64_t value() const { return sum; }
};

TEST_P(durable_stores, a_class_with_events_is_their_fold) {
  const auto counters = [] {
    return kind<Counter, &Counter::add, &Counter::add_twice, &Counter::value>();
  };
  with(
      [](store all) -> task<> {
        auto one = all.get<Counter>("one");
        for (int i = 1; i <= 25; ++i) {
          EXPECT_EQ(co_await one.ask<&Counter::add>(1), i);
        }
        co_await one.ask<&Counter::add_twice>(10);
      },
      durable::options(), counters());
  with(
      [](store all) -> task<> {
        auto one = all.get<Counter>("one");
        EXPECT_EQ(co_await one.ask<&Counter::value>(), 45);
        EXPECT_EQ(co_await one.ask<&Counter::add>(1), 46);
      },
      durable::options(), counters());
}

struct OtherCounter {
  using event = std::string;
  std::int64_t sum = 0;
  void apply(const std::string&) { ++sum; }
  durable::changes<std::string> add(int) const { return {{"one"}}; }
};

// All keys of the class with that prefix, by pages of that size.
template <class T>
task<std::vector<std::string>> all_keys(store opened, std::string prefix, std::size_t most) {
  std::vector<std::string> found;
  durable::key_range range{.prefix = std::move(prefix), .most = most};
  for (bool has_more = true; has_more;) {
    auto asks = opened.keys<T>(range);
    const durable::key_page page = co_await std::move(asks);
    EXPECT_LE(page.keys.size(), most);
    EXPECT_TRUE(!page.has_more || page.keys.size() == most);
    found.insert(found.end(), page.keys.begin(), page.keys.end());
    has_more = page.has_more;
    if (has_more) range.after = page.keys.back();
  }
  co_return found;
}

using key_list = std::vector<std::string>;
const key_list keys_stored{"b", "a/2", "a/10", "a", "b\xc3\xa4", "a/1", "it's", ""};
const key_list keys_of_a{"a/1", "a/10", "a/2"}, keys_of_b{"b", "b\xc3\xa4"};
const key_list keys_behind_b{"b\xc3\xa4", "it's"}, keys_of_counters{"few", "many"};
constexpr std::size_t page_sizes[] = {1, 3, 8, 100}, refused_sizes[] = {0, 10'001};

task<key_list> keys_in(store bank, durable::key_range range) {
  auto asks = bank.keys<Account>(std::move(range));
  durable::key_page page = co_await std::move(asks);
  co_return std::move(page.keys);
}

TEST_P(durable_stores, keys_come_in_pages_in_the_order_of_their_bytes) {
  const auto both = [](store all) -> task<> {
    for (const std::string& key : keys_stored)
      co_await all.get<Account>(key).ask<&Account::deposit>(1);
    // A state and events, and events alone.
    for (int i = 1; i <= 12; ++i) co_await all.get<Counter>("many").ask<&Counter::add>(1);
    co_await all.get<Counter>("few").ask<&Counter::add>(1);
    key_list sorted = keys_stored;
    std::ranges::sort(sorted);
    for (const std::size_t most : page_sizes) {
      auto asks = all_keys<Account>(all, "", most);
      const key_list found = co_await std::move(asks);
      EXPECT_EQ(found, sorted) << most;
      auto asks_prefix = all_keys<Account>(all, "a/", most);
      const key_list found_prefix = co_await std::move(asks_prefix);
      EXPECT_EQ(found_prefix, keys_of_a) << most;
      auto asks_counters = all_keys<Counter>(all, "", most);
      const key_list counters = co_await std::move(asks_counters);
      EXPECT_EQ(counters, keys_of_counters) << most;
    }
  };
  with(both, durable::options(), accounts(),
       kind<Counter, &Counter::add, &Counter::add_twice, &Counter::value>());
}

// Keys of any bytes, and prefixes that end within a character: each key is in one page, at the same
// place whatever the size of the page.
const key_list keys_of_any_bytes{"",
                                 std::string("z\0a", 3),
                                 "z",
                                 "z\\",
                                 "z\\x41",
                                 "zA",
                                 "zzz",
                                 "z\xc3",
                                 "z\xc3z",
                                 "z\xc3\xa4",
                                 "z\xc3\xb6",
                                 "z\xe2",
                                 "z\xe2\x82",
                                 "z\xe2\x82\xac",
                                 "z\xe2\x82\xadz",
                                 "z\xe2\x83\x80",
                                 "z\xff",
                                 "z\xf0\x9f\x98\x80",
                                 "\xff\xfe"};
const key_list prefixes_of_any_bytes{"",          "z",     "z\\",
                                     "z\xc3",     "z\xe2", "z\xe2\x82",
                                     "z\xf0\x9f", "z\xff", std::string("z\0", 2),
                                     "\xff",      "z\xc4"};

TEST_P(durable_stores, keys_of_any_bytes_are_in_one_page) {
  with([](store all) -> task<> {
    for (const std::string& key : keys_of_any_bytes)
      co_await all.get<Account>(key).ask<&Account::deposit>(1);
    for (const std::string& prefix : prefixes_of_any_bytes) {
      key_list expected = keys_of_any_bytes;
      std::erase_if(expected, [&](const std::string& key) { return !key.starts_with(prefix); });
      std::ranges::sort(expected);
      auto asks_whole = all_keys<Account>(all, prefix, 100);
      const key_list whole = co_await std::move(asks_whole);
      key_list sorted = whole;
      std::ranges::sort(sorted);
      EXPECT_EQ(sorted, expected) << prefix;
      for (const std::size_t most : page_sizes) {
        auto asks = all_keys<Account>(all, prefix, most);
        const key_list found = co_await std::move(asks);
        EXPECT_EQ(found, whole) << prefix << most;
      }
    }
  });
}

TEST_P(durable_stores, keys_begin_behind_the_last_of_a_page_and_with_the_prefix) {
  with([](store bank) -> task<> {
    for (const std::string& key : keys_stored)
      co_await bank.get<Account>(key).ask<&Account::deposit>(1);
    durable::key_range range;
    range.after = "b";
    auto asks_behind = keys_in(bank, range);
    const key_list behind = co_await std::move(asks_behind);
    EXPECT_EQ(behind, keys_behind_b);
    range.prefix = "b";
    range.after = "a/2";
    auto asks_before = keys_in(bank, range);
    const key_list before = co_await std::move(asks_before);
    EXPECT_EQ(before, keys_of_b);
    range.prefix = "c";
    auto asks_none = keys_in(bank, range);
    const key_list none = co_await std::move(asks_none);
    EXPECT_EQ(none, key_list());
  });
}

TEST_P(durable_stores, keys_of_an_unknown_class_or_of_no_page_are_refused) {
  with([](store bank) -> task<> {
    auto unknown = bank.keys<Counter>();
    auto asks = error_of<usage_error>(std::move(unknown));
    std::string said = co_await std::move(asks);
    EXPECT_NE(said.find("not given to store::open"), std::string::npos) << said;
    for (const std::size_t most : refused_sizes) {
      durable::key_range range;
      range.most = most;
      auto keys = bank.keys<Account>(range);
      auto refused = error_of<usage_error>(std::move(keys));
      said = co_await std::move(refused);
      EXPECT_NE(said.find("it is 1 to 10000"), std::string::npos) << said;
    }
  });
}

TEST_P(durable_stores, events_of_another_shape_are_refused_under_the_same_number) {
  with([](store all) -> task<> { co_await all.get<Counter>("one").ask<&Counter::add>(1); },
       durable::options(), kind<Counter, &Counter::add>("Counter"));
  EXPECT_THROW(with([](store) -> task<> { co_return; }, durable::options(),
                    kind<OtherCounter, &OtherCounter::add>("Counter")),
               durable::schema_error);
}

struct Lamp {
  using event = std::variant<int>;
  int sum = 0;
  void apply(const event& by) { sum += std::get<0>(by); }
  durable::changes<event> add(int by) const { return {{event(by)}}; }
  int value() const { return sum; }
};
struct NewLamp {
  static constexpr int schema = 2;
  using previous = Lamp;
  static NewLamp upgrade(Lamp old) { return {old.sum}; }
  using event = std::variant<int, std::string>;
  int sum = 0;
  void apply(const event& by) { by.index() == 0 ? sum += std::get<0>(by) : sum = 0; }
  durable::changes<event> reset(std::string why) const { return {{event(std::move(why))}}; }
  durable::changes<event> add(int by) const { return {{event(by)}}; }
  int value() const { return sum; }
};

TEST_P(durable_stores, events_of_a_newer_program_are_left_alone_and_said_to_be) {
  const auto old = [] { return kind<Lamp, &Lamp::add, &Lamp::value>("Lamp"); };
  const auto newer = [] {
    return kind<NewLamp, &NewLamp::reset, &NewLamp::add, &NewLamp::value>("Lamp");
  };
  with([](store all) -> task<> { co_await all.get<Lamp>("one").ask<&Lamp::add>(1); },
       durable::options(), old());
  with(
      [](store all) -> task<> {
        co_await all.get<NewLamp>("one").ask<&NewLamp::reset>("new");
        co_await all.get<NewLamp>("one").ask<&NewLamp::add>(7);
        co_await all.get<NewLamp>("two").ask<&NewLamp::add>(5);
      },
      durable::options(), newer());
  with(
      [](store all) -> task<> {
        const std::string said =
            co_await error_of<durable::schema_error>(all.get<Lamp>("one").ask<&Lamp::value>());
        EXPECT_NE(said.find("Lamp one has events that this program cannot read"), std::string::npos)
            << said;
        EXPECT_NE(said.find("schema number 2"), std::string::npos) << said;
        EXPECT_EQ(co_await all.get<Lamp>("two").ask<&Lamp::value>(), 5);
      },
      durable::options(), old());
  with(
      [](store all) -> task<> {
        EXPECT_EQ(co_await all.get<NewLamp>("one").ask<&NewLamp::value>(), 7);
      },
      durable::options(), newer());
}

struct First {
  int by = 0;
};
struct Second {
  int by = 0;
};
template <int Number, class... Events>
struct Total_of {
  static constexpr int schema = Number;
  using event = std::variant<Events...>;
  int sum = 0;
  void apply(const event& one) {
    std::visit([this](const auto& change) { sum += change.by; }, one);
    if (std::holds_alternative<Second>(one)) sum += 100;
  }
  durable::changes<event> add(int by) const { return {{event(Second{by})}}; }
  int value() const { return sum; }
};
struct Third {
  int by = 0;
};
struct Fourth {
  int by = 0;
};

TEST_P(durable_stores, events_of_another_number_are_read_only_if_they_mean_the_same) {
  const auto nothing = [](store) -> task<> { co_return; };
  const auto kinds = []<class T>(std::type_identity<T>) {
    return kind<T, &T::add, &T::value>("Total");
  };
  using before = Total_of<1, First, Second>;
  with([](store all) -> task<> { co_await all.get<before>("one").template ask<&before::add>(1); },
       durable::options(), kinds(std::type_identity<before>()));
  const auto refused = [&](auto type) {
    EXPECT_THROW(with(nothing, durable::options(), kinds(type)), durable::schema_error);
  };
  refused(std::type_identity<Total_of<2, Second, First>>());
  refused(std::type_identity<Total_of<2, Third, First, Second>>());
  refused(std::type_identity<Total_of<2, Third, Second>>());
  using later = Total_of<2, First, Second, Third>;
  with(
      [](store all) -> task<> {
        EXPECT_EQ(co_await all.get<later>("one").template ask<&later::value>(), 101);
      },
      durable::options(), kinds(std::type_identity<later>()));
  // Both numbers are compared from now on, and an older program with the newer one.
  refused(std::type_identity<Total_of<3, First, Second>>());
  refused(std::type_identity<Total_of<3, First, Second, Fourth, Third>>());
  with(nothing, durable::options(), kinds(std::type_identity<before>()));
}

TEST_P(durable_stores, what_is_too_large_to_be_stored_fails_alone) {
  durable::options chosen;
  chosen.state_bytes_max = 1'000;
  with(
      [](store bank) -> task<> {
        auto alice = bank.get<Account>("alice");
        EXPECT_NE(
            co_await error_of<usage_error>(alice.ask<&Account::note>(std::string(1'001, 'x'))),
            "none");
        EXPECT_NE(co_await error_of<usage_error>(
                      bank.get<Account>(std::string(1'001, 'k')).ask<&Account::deposit>(1)),
                  "none");
        EXPECT_EQ(co_await alice.ask<&Account::deposit>(1), 1);
      },
      chosen);
}

struct Alarm {
  int rings = 0;
  void set(durable::turn& turn) {
    turn.remind_at<&Alarm::ring>("once", std::chrono::system_clock::time_point(), 1);
    turn.remind_every<&Alarm::ring>("again", 5ms, 1);
  }
  void set_far(durable::turn& turn) {
    turn.remind_every<&Alarm::ring>("never", std::chrono::milliseconds::max(), 100);
    turn.remind_every<&Alarm::ring>("late", std::chrono::hours(24 * 365 * 300), 100);
    turn.remind_at<&Alarm::ring>("last", std::chrono::system_clock::time_point::max(), 100);
  }
  void stop(durable::turn& turn) { turn.forget_reminder("again"); }
  void ring(int by) { rings += by; }
  int count() const { return rings; }
};

TEST_P(durable_stores, reminders_come_also_after_a_restart) {
  const auto alarms = [] {
    return kind<Alarm, &Alarm::set, &Alarm::stop, &Alarm::ring, &Alarm::count>();
  };
  with([](store all) -> task<> { co_await all.get<Alarm>("a").ask<&Alarm::set>(); },
       durable::options(), alarms());
  with(
      [](store all) -> task<> {
        auto alarm = all.get<Alarm>("a");
        while (co_await alarm.ask<&Alarm::count>() < 3) co_await sleep_for(5ms);
        co_await alarm.ask<&Alarm::stop>();
      },
      durable::options(), alarms());
}

// A time that is beyond what the clock can tell never comes, and stops no other reminder.
TEST_P(durable_stores, reminders_that_never_come_hold_no_other_up) {
  const auto alarms = [] {
    return kind<Alarm, &Alarm::set, &Alarm::set_far, &Alarm::stop, &Alarm::ring, &Alarm::count>();
  };
  for (const char* name : {"a", "b"}) {
    with(
        [name = std::string(name)](store all) -> task<> {
          co_await all.get<Alarm>("far").ask<&Alarm::set_far>();
          auto alarm = all.get<Alarm>(name);
          co_await alarm.ask<&Alarm::set>();
          while (co_await alarm.ask<&Alarm::count>() < 3) co_await sleep_for(5ms);
          co_await alarm.ask<&Alarm::stop>();
          EXPECT_EQ(co_await all.get<Alarm>("far").ask<&Alarm::count>(), 0);
        },
        durable::options(), alarms());
  }
}

}  // namespace
}  // namespace troupe::test
