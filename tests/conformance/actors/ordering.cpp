// P2: messages from one sender to one actor are handled in the order sent, and delivery is causal.
#include <map>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

class p2_ordering : public conformance {};

struct sink {
  std::atomic<int>* wrong;
  std::map<int, int> next;
  int seen = 0;
  explicit sink(std::atomic<int>* wrong) : wrong(wrong) {}
  void put(int sender, int number) {
    if (next[sender]++ != number) ++*wrong;
    ++seen;
  }
};

struct source {
  ref<sink> to;
  int id;
  int sent = 0;
  source(ref<sink> to, int id) : to(std::move(to)), id(id) {}
  // Sends some messages at once, and the rest in later turns, on whatever worker those run.
  void send(int left) {
    for (int i = 0; i < 3 && left > 0; ++i, --left) to.tell<&sink::put>(id, sent++);
    if (left > 0) self(this).tell<&source::send>(left);
  }
};

TEST_P(p2_ordering, one_senders_messages_are_handled_in_the_order_sent) {
  std::atomic<int> wrong{0};
  runtime rt(options());
  auto to = rt.spawn<sink>(&wrong);
  const int each = fewer(3000);
  for (int id = 0; id < 8; ++id) rt.spawn<source>(to, id).tell<&source::send>(each);
  rt.spawn<source>(pinned("source"), to, 8).tell<&source::send>(each);
  rt.spawn<source>(on_main(), to, 9).tell<&source::send>(each);
  std::vector<std::thread> outside;
  for (int id = 10; id < 12; ++id) {
    outside.emplace_back([=, open = rt.hold()] {
      for (int i = 0; i < each; ++i) to.tell<&sink::put>(id, i);
    });
  }
  rt.run();
  for (auto& thread : outside) thread.join();
  int seen = 0;
  to.tell([&seen](sink& self) { seen = self.seen; });
  rt.run();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(seen, 12 * each);
}

TEST_P(p2_ordering, a_pinned_receiver_and_one_on_the_main_thread_keep_the_order_too) {
  for (const on_thread& where : {pinned("sink"), on_main()}) {
    std::atomic<int> wrong{0};
    runtime rt(options());
    auto to = rt.spawn<sink>(where, unchecked{&wrong});
    const int each = fewer(2000);
    for (int id = 0; id < 4; ++id) rt.spawn<source>(to, id).tell<&source::send>(each);
    rt.run();
    int seen = 0;
    to.tell([&seen](sink& self) { seen = self.seen; });
    rt.run();
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_EQ(seen, 4 * each);
  }
}

// A tells B, and then A tells C, which tells B: B handles A's message first. The same holds through
// a chain of any length.
struct ledger {
  std::atomic<int>* wrong;
  std::map<std::pair<int, int>, bool> told;
  int checked = 0;
  explicit ledger(std::atomic<int>* wrong) : wrong(wrong) {}
  void first(int teller, int round) { told[{teller, round}] = true; }
  void second(int teller, int round) {
    if (!told[{teller, round}]) ++*wrong;
    ++checked;
  }
};

struct relay {
  ref<ledger> to;
  ref<relay> next;
  relay(ref<ledger> to, ref<relay> next) : to(std::move(to)), next(std::move(next)) {}
  void pass(int teller, int round) {
    to.tell<&ledger::second>(teller, round);
    if (next) next.tell<&relay::pass>(teller, round);
  }
};

struct teller {
  ref<ledger> to;
  ref<relay> via;
  int id;
  teller(ref<ledger> to, ref<relay> via, int id) : to(std::move(to)), via(std::move(via)), id(id) {}
  void tell_both(int rounds) {
    to.tell<&ledger::first>(id, rounds);
    via.tell<&relay::pass>(id, rounds);
    if (rounds > 1) self(this).tell<&teller::tell_both>(rounds - 1);
  }
};

TEST_P(p2_ordering, delivery_is_causal_through_third_actors) {
  std::atomic<int> wrong{0};
  runtime rt(options());
  const int rounds = fewer(500);
  const int tellers = 6, chain = 4;
  std::vector<ref<ledger>> books{rt.spawn<ledger>(&wrong),
                                 rt.spawn<ledger>(pinned("ledger"), unchecked{&wrong}),
                                 rt.spawn<ledger>(on_main(), unchecked{&wrong})};
  for (const auto& book : books) {
    for (int id = 0; id < tellers; ++id) {
      ref<relay> via;
      for (int i = 0; i < chain; ++i) {
        via = i == 2 ? rt.spawn<relay>(pinned("relay"), book, via) : rt.spawn<relay>(book, via);
      }
      rt.spawn<teller>(book, via, id).tell<&teller::tell_both>(rounds);
    }
  }
  rt.run();
  std::atomic<int> checked{0};
  for (const auto& book : books) {
    book.tell([&checked](ledger& self) { checked += self.checked; });
  }
  rt.run();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(checked.load(), 3 * tellers * chain * rounds);
}

TEST_P(p2_ordering, what_happens_before_outside_is_causal_too) {
  // One outside thread tells B, then wakes another outside thread, which tells B.
  std::atomic<int> wrong{0};
  runtime rt(options());
  auto book = rt.spawn<ledger>(&wrong);
  const int rounds = fewer(3000);
  std::atomic<int> turn{0};
  std::thread first([&, open = rt.hold()] {
    for (int i = 0; i < rounds; ++i) {
      wait_for(turn, 2 * i);
      book.tell<&ledger::first>(0, i);
      set_and_wake(turn, 2 * i + 1);
    }
  });
  std::thread second([&, open = rt.hold()] {
    for (int i = 0; i < rounds; ++i) {
      wait_for(turn, 2 * i + 1);
      book.tell<&ledger::second>(0, i);
      set_and_wake(turn, 2 * i + 2);
    }
  });
  rt.run();
  first.join();
  second.join();
  int checked = 0;
  book.tell([&checked](ledger& self) { checked = self.checked; });
  rt.run();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(checked, rounds);
}

TEST_P(p2_ordering, messages_to_oneself_stay_in_order_across_turns) {
  struct loner {
    std::vector<int> seen;
    void start() {
      for (int i = 0; i < 1000; ++i) self(this).tell<&loner::put>(i);
    }
    void put(int n) { seen.push_back(n); }
  };
  runtime_options chosen = options();
  chosen.turn.messages = 3;
  runtime rt(chosen);
  auto one = rt.spawn<loner>();
  one.tell<&loner::start>();
  rt.run();
  std::vector<int> seen;
  one.tell([&seen](loner& self) { seen = self.seen; });
  rt.run();
  ASSERT_EQ(seen.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[static_cast<unsigned>(i)], i);
}

TROUPE_TEST_EACH(p2_ordering, all_settings);

}  // namespace
}  // namespace troupe::test
