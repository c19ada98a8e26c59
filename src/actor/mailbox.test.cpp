#include "actor/mailbox.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace troupe::actor {
namespace {

struct letter {
  std::atomic<std::uintptr_t> next{0};
  int sender = 0, number = 0;
};
struct alignas(16) desk {
  int claims = 0;
};
using word = std::atomic<std::uintptr_t>;
using box = mailbox_word<letter, desk, word>;

// What collect gives, oldest first.
std::vector<letter*> collected(box& from, desk& owner) {
  std::vector<letter*> all;
  from.collect(owner, [&](letter& one) { all.insert(all.begin(), &one); });
  return all;
}

TEST(mailbox, it_is_claimed_once_and_rests_when_empty) {
  word state{0};
  box mail(state);
  desk one, two;
  EXPECT_TRUE(mail.claim(one));
  EXPECT_FALSE(mail.claim(two));
  EXPECT_FALSE(mail.has_mail(one));
  EXPECT_TRUE(mail.rest(one));
  EXPECT_EQ(mail.look(), box::dormant);
  EXPECT_TRUE(mail.claim(two));
}

TEST(mailbox, it_keeps_sender_order_and_does_not_rest_with_mail) {
  word state{0};
  box mail(state);
  desk owner;
  std::vector<letter> letters(5);
  ASSERT_TRUE(mail.claim(owner));
  for (auto& one : letters) ASSERT_TRUE(mail.append(mail.look(), one));
  EXPECT_TRUE(mail.has_mail(owner));
  EXPECT_FALSE(mail.rest(owner));
  std::vector<letter*> expected;
  for (auto& one : letters) expected.push_back(&one);
  EXPECT_EQ(collected(mail, owner), expected);
  EXPECT_FALSE(mail.has_mail(owner));
  EXPECT_TRUE(mail.rest(owner));
}

TEST(mailbox, an_append_to_a_state_that_has_changed_fails) {
  word state{0};
  box mail(state);
  desk owner;
  letter one, two;
  ASSERT_TRUE(mail.claim(owner));
  const auto seen = mail.look();
  ASSERT_TRUE(mail.append(seen, one));
  EXPECT_FALSE(mail.append(seen, two));
  EXPECT_EQ(collected(mail, owner), std::vector<letter*>{&one});
}

TEST(mailbox, an_exchange_never_fails_whatever_the_state) {
  word state{0};
  box mail(state);
  desk owner;
  letter first, second, third;
  EXPECT_EQ(mail.append_always(first), box::dormant) << "the sender is to finish";
  EXPECT_EQ(mail.append_always(second), reinterpret_cast<std::uintptr_t>(&first));
  mail.finish(first, box::tagged(owner));
  EXPECT_NE(mail.append_always(third), box::dormant);
  EXPECT_EQ(collected(mail, owner), (std::vector<letter*>{&first, &second, &third}));
  EXPECT_TRUE(mail.rest(owner));
}

// The protocol as deliver uses it: whoever claims runs the actor, at once, until it rests.
TEST(mailbox, nothing_is_lost_or_out_of_order_between_many_senders) {
  constexpr int senders = 4, each = 20000;
  word state{0};
  box mail(state);
  const auto letters = std::make_unique<letter[]>(senders * each);
  std::vector<int> next(senders, 0);  // the owner's: passed on with the word
  std::atomic<int> handled{0}, wrong{0}, owners{0};
  const auto run = [&](desk& mine) {
    if (owners.fetch_add(1) != 0) ++wrong;
    for (;;) {
      for (letter* one : collected(mail, mine)) {
        if (one->number != next[static_cast<unsigned>(one->sender)]++) ++wrong;
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
      std::vector<desk> desks(each);  // one for each claim: others may look at an old one
      for (int i = 0; i < each; ++i) {
        letter& one = letters[static_cast<unsigned>(s * each + i)];
        one.sender = s;
        one.number = i;
        desk& mine = desks[static_cast<unsigned>(i)];
        for (int tries = 0;; ++tries) {
          if (i % 7 == 3 || tries == 16) {
            if (mail.append_always(one) == box::dormant) {
              mail.finish(one, box::tagged(mine));
              run(mine);
            }
            break;
          }
          const auto seen = mail.look();
          if (seen == box::dormant) {
            if (!mail.claim(mine)) continue;
            static_cast<void>(mail.append_always(one));
            run(mine);
            break;
          }
          if (mail.append(seen, one)) break;
        }
      }
      // The desks live until nobody can run on them.
      while (handled.load() < senders * each) std::this_thread::yield();
    });
  }
  for (auto& thread : all) thread.join();
  EXPECT_EQ(handled.load(), senders * each);
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(mail.look(), box::dormant);
}

}  // namespace
}  // namespace troupe::actor
