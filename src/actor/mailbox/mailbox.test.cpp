#include "actor/mailbox/mailbox.hpp"

#include "actor/waits/hold_parked.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace troupe::actor {
namespace {

struct alignas(16) letter {
  std::atomic<std::uintptr_t> next{0};
  int sender = 0, number = 0;
};
struct alignas(16) desk {
  int claims = 0;
};
using word = std::atomic<std::uintptr_t>;
using box = mailbox_word<letter, desk, word>;

// What collect() gives, from the oldest message to the newest.
std::vector<letter*> collected(box& from, desk& owner, std::vector<letter*>* urgent = nullptr) {
  std::vector<letter*> all;
  from.collect(owner, [&](letter& taken, bool is_urgent) {
    all.insert(all.begin(), &taken);
    if (is_urgent && urgent != nullptr) urgent->insert(urgent->begin(), &taken);
  });
  return all;
}

TEST(mailbox, it_is_claimed_once_and_rests_when_empty) {
  word state{0};
  box mail(state);
  desk first, second;
  EXPECT_TRUE(mail.claim(first));
  EXPECT_FALSE(mail.claim(second));
  EXPECT_FALSE(mail.has_mail(first));
  EXPECT_TRUE(mail.rest(first));
  EXPECT_EQ(mail.read(), box::inactive);
  EXPECT_TRUE(mail.claim(second));
}

TEST(mailbox, it_keeps_sender_order_and_does_not_rest_with_mail) {
  word state{0};
  box mail(state);
  desk owner;
  std::vector<letter> letters(5);
  ASSERT_TRUE(mail.claim(owner));
  for (auto& sent : letters) ASSERT_TRUE(mail.append(mail.read(), sent, false, false));
  EXPECT_TRUE(mail.has_mail(owner));
  EXPECT_FALSE(mail.rest(owner));
  std::vector<letter*> expected;
  for (auto& sent : letters) expected.push_back(&sent);
  EXPECT_EQ(collected(mail, owner), expected);
  EXPECT_FALSE(mail.has_mail(owner));
  EXPECT_TRUE(mail.rest(owner));
}

TEST(mailbox, an_append_to_a_state_that_has_changed_fails) {
  word state{0};
  box mail(state);
  desk owner;
  letter first, second;
  ASSERT_TRUE(mail.claim(owner));
  const auto seen = mail.read();
  ASSERT_TRUE(mail.append(seen, first, false, false));
  EXPECT_FALSE(mail.append(seen, second, false, false));
  EXPECT_EQ(collected(mail, owner), std::vector<letter*>{&first});
}

TEST(mailbox, an_exchange_never_fails_whatever_the_state) {
  word state{0};
  box mail(state);
  desk owner;
  letter first, second, third;
  EXPECT_EQ(mail.append_always(first), box::inactive) << "the sender is to finish";
  EXPECT_EQ(mail.append_always(second), reinterpret_cast<std::uintptr_t>(&first));
  mail.finish(first, box::tagged(owner));
  EXPECT_NE(mail.append_always(third), box::inactive);
  EXPECT_EQ(collected(mail, owner), (std::vector<letter*>{&first, &second, &third}));
  EXPECT_TRUE(mail.rest(owner));
}

TEST(mailbox, ordinary_mail_leaves_it_parked_and_urgent_mail_wakes_it) {
  word state{0};
  box mail(state);
  desk owner;
  letter first, second, urgent, third;
  ASSERT_TRUE(mail.claim(owner));
  ASSERT_TRUE(mail.park(owner));
  EXPECT_TRUE(box::is_parked(mail.read()));
  EXPECT_EQ(&box::as_activation(mail.read()), &owner);
  ASSERT_TRUE(mail.append(mail.read(), first, false, false));
  ASSERT_TRUE(mail.append(mail.read(), second, false, false));
  const auto parked = mail.read();
  EXPECT_TRUE(box::is_parked(parked));
  EXPECT_FALSE(mail.claim(owner)) << "it is not inactive";
  ASSERT_TRUE(mail.append(parked, urgent, true, true));
  EXPECT_FALSE(box::is_parked(mail.read()));
  EXPECT_EQ(&box::activation_under(parked), &owner);
  ASSERT_TRUE(mail.append(mail.read(), third, false, false));
  EXPECT_FALSE(box::is_parked(mail.read()));
  std::vector<letter*> found;
  EXPECT_EQ(collected(mail, owner, &found),
            (std::vector<letter*>{&first, &second, &urgent, &third}));
  EXPECT_EQ(found, std::vector<letter*>{&urgent});
  EXPECT_TRUE(mail.rest(owner));
}

TEST(mailbox, ordinary_mail_may_wake_it_too) {
  word state{0};
  box mail(state);
  desk owner;
  letter first, second;
  ASSERT_TRUE(mail.claim(owner));
  ASSERT_TRUE(mail.park(owner));
  const auto parked = mail.read();
  ASSERT_TRUE(mail.append(parked, first, false, true));
  EXPECT_FALSE(box::is_parked(mail.read()));
  EXPECT_EQ(&box::activation_under(parked), &owner);
  ASSERT_TRUE(mail.append(mail.read(), second, false, false));
  std::vector<letter*> urgent;
  EXPECT_EQ(collected(mail, owner, &urgent), (std::vector<letter*>{&first, &second}));
  EXPECT_TRUE(urgent.empty());
  EXPECT_TRUE(mail.park(owner));
}

TEST(mailbox, it_does_not_park_with_mail_of_any_kind) {
  word state{0};
  box mail(state);
  desk owner;
  letter first, second;
  ASSERT_TRUE(mail.claim(owner));
  ASSERT_TRUE(mail.append(mail.read(), first, false, false));
  EXPECT_FALSE(mail.park(owner));
  EXPECT_EQ(collected(mail, owner), std::vector<letter*>{&first});
  ASSERT_TRUE(mail.append(mail.read(), second, true, true));
  EXPECT_FALSE(mail.park(owner));
  EXPECT_EQ(collected(mail, owner), std::vector<letter*>{&second});
  EXPECT_TRUE(mail.park(owner));
}

TEST(mailbox, an_exchange_takes_the_parked_state_away) {
  word state{0};
  box mail(state);
  desk owner;
  letter first, second, urgent;
  ASSERT_TRUE(mail.claim(owner));
  ASSERT_TRUE(mail.park(owner));
  ASSERT_TRUE(mail.append(mail.read(), first, false, false));
  const auto seen = mail.append_always(second);
  EXPECT_TRUE(box::is_parked(seen));
  EXPECT_EQ(&box::activation_under(seen), &owner);
  EXPECT_FALSE(box::is_parked(mail.read()));
  EXPECT_EQ(collected(mail, owner), (std::vector<letter*>{&first, &second}));
  ASSERT_TRUE(mail.park(owner));
  const auto parked = mail.read();
  ASSERT_TRUE(mail.append(parked, urgent, true, true));
  EXPECT_EQ(&box::activation_under(parked), &owner);
  EXPECT_EQ(collected(mail, owner), std::vector<letter*>{&urgent});
}

// Counts how often the link of a message is read.
struct counted_link : std::atomic<std::uintptr_t> {
  static inline int loads = 0;
  std::uintptr_t load(std::memory_order order) const noexcept {
    ++loads;
    return std::atomic<std::uintptr_t>::load(order);
  }
};
struct alignas(16) counted_letter {
  counted_link next{};
};
using counted_box = mailbox_word<counted_letter, desk, word>;

TEST(mailbox, holding_a_parked_actor_looks_at_none_of_its_mail) {
  word state{0};
  counted_box mail(state);
  desk owner;
  std::vector<counted_letter> letters(1000);
  ASSERT_TRUE(mail.claim(owner));
  ASSERT_TRUE(mail.park(owner));
  for (auto& sent : letters) ASSERT_TRUE(mail.append(mail.read(), sent, false, false));
  const std::uintptr_t before = mail.read();
  counted_link::loads = 0;
  int looks = 0;
  const auto parked_as = [&]() -> desk& { return owner; };
  const auto look = [&](desk& held) {
    EXPECT_EQ(&held, &owner);
    EXPECT_FALSE(counted_box::is_parked(mail.read()));
    ++looks;
  };
  EXPECT_TRUE(hold_parked(mail, parked_as, look, [](desk&) { ADD_FAILURE() << "no mail came"; }));
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(mail.read(), before);
  EXPECT_EQ(counted_link::loads, 0);
  // Mail that comes meanwhile is left to the thread that looks at the actor.
  counted_letter late;
  int woken = 0;
  const auto send = [&](desk&) { ASSERT_TRUE(mail.append(mail.read(), late, false, false)); };
  EXPECT_TRUE(
      hold_parked(mail, parked_as, send, [&](desk& held) { woken += &held == &owner ? 1 : 0; }));
  EXPECT_EQ(woken, 1);
  EXPECT_FALSE(counted_box::is_parked(mail.read()));
  EXPECT_EQ(counted_link::loads, 0);
  EXPECT_TRUE(hold_parked(mail, parked_as, look, [](desk&) {})) << "it is not parked any more";
  EXPECT_EQ(looks, 1);
}

// A mailbox to which another thread sends between each look at the word and the attempt to take it
// over.
struct flooded_box {
  static bool is_parked(std::uintptr_t) { return true; }
  std::uintptr_t read() const { return 1; }
  bool seize(std::uintptr_t) const {
    ++tries;
    return false;
  }
  bool let_go(std::uintptr_t) const { return true; }
  int& tries;
};

TEST(mailbox, holding_an_actor_ends_after_some_tries) {
  int tries = 0;
  desk owner;
  const auto never = [](desk&) { ADD_FAILURE() << "it was not held"; };
  EXPECT_FALSE(hold_parked(
      flooded_box{tries}, [&]() -> desk& { return owner; }, never, never));
  EXPECT_EQ(tries, hold_tries_max);
}

// The protocol as deliver uses it: the thread that claims runs the actor at once, until it rests.
TEST(mailbox, nothing_is_lost_or_out_of_order_between_many_senders) {
  constexpr int senders = 4, each = 20000;
  word state{0};
  box mail(state);
  const auto letters = std::make_unique<letter[]>(senders * each);
  // Owned by the thread that runs the actor. The word passes the ownership on.
  std::vector<int> next(senders, 0);
  std::atomic<int> handled{0}, wrong{0}, owners{0};
  const auto run = [&](desk& mine) {
    if (owners.fetch_add(1) != 0) ++wrong;
    for (;;) {
      for (letter* taken : collected(mail, mine)) {
        if (taken->number != next[static_cast<unsigned>(taken->sender)]++) ++wrong;
        ++handled;
      }
      owners.fetch_sub(1);
      if (mail.rest(mine)) return;
      owners.fetch_add(1);
    }
  };
  std::vector<std::thread> all;
  for (int s = 0; s < senders; ++s) {
    all.emplace_back([&, s] {
      // One desk for each claim: other threads may still look at an old one.
      std::vector<desk> desks(each);
      for (int i = 0; i < each; ++i) {
        letter& sent = letters[static_cast<unsigned>(s * each + i)];
        sent.sender = s;
        sent.number = i;
        desk& mine = desks[static_cast<unsigned>(i)];
        for (int tries = 0;; ++tries) {
          if (i % 7 == 3 || tries == 16) {
            if (mail.append_always(sent) == box::inactive) {
              mail.finish(sent, box::tagged(mine));
              run(mine);
            }
            break;
          }
          const auto seen = mail.read();
          if (seen == box::inactive) {
            if (!mail.claim(mine)) continue;
            static_cast<void>(mail.append_always(sent));
            run(mine);
            break;
          }
          if (mail.append(seen, sent, false, false)) break;
        }
      }
      // The desks live until no thread can run on them.
      while (handled.load() < senders * each) std::this_thread::yield();
    });
  }
  for (auto& thread : all) thread.join();
  EXPECT_EQ(handled.load(), senders * each);
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(mail.read(), box::inactive);
}

}  // namespace
}  // namespace troupe::actor
