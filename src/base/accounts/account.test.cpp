#include "base/accounts/account.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <vector>

namespace troupe::base {
namespace {

constexpr std::size_t kib = 1024, mib = 1024 * kib;

// Gives everything back when it is told to, or keeps it.
struct holder final : account {
  holder(ledger& book, ledger::peer& owner) { open(book, owner); }
  holder(const holder&) = delete;
  ~holder() override { close(); }
  void end_account() noexcept override { ++asked; }
  int asked = 0;
};

// Peers with a share each, and holders without one.
struct account_ledger : testing::Test {
  ledger book{{.bytes = 8 * mib, .peer_bytes = mib, .descriptors = 40, .peer_descriptors = 5}};
  ledger::peer& first = book.join("192.0.2.1");
  ledger::peer& second = book.join("192.0.2.2");
  ledger::peer& unnamed = book.join("");
  ~account_ledger() override {
    book.leave(first);
    book.leave(second);
    book.leave(unnamed);
  }
};

TEST_F(account_ledger, leases_in_steps) {
  holder tenant(book, first);
  const std::size_t leases[][2] = {{1, kib},
                                   {1024, kib},
                                   {1025, 2 * kib},
                                   {64 * kib, 64 * kib},
                                   {65537, 128 * kib},
                                   {128 * kib, 128 * kib},
                                   {128 * kib + 1, 192 * kib},
                                   {0, 0}};
  for (const auto& [bytes, leased] : leases) {
    tenant.hold(bytes);
    EXPECT_EQ(tenant.leased(), leased) << bytes;
    EXPECT_EQ(book.now().bytes, leased) << bytes;
  }
}

TEST_F(account_ledger, keeps_a_lease_that_is_a_little_too_large) {
  holder tenant(book, first);
  tenant.hold(20 * kib);
  tenant.hold(20 * kib - account::slack_bytes);
  EXPECT_EQ(tenant.leased(), 20 * kib);
  tenant.hold(20 * kib - account::slack_bytes - 1);
  EXPECT_EQ(tenant.leased(), 4 * kib);
}

TEST_F(account_ledger, has_no_spare_memory_while_holders_are_ending) {
  holder large(book, first), other(book, second), proxy(book, unnamed);
  EXPECT_TRUE(large.has_spare(mib));
  EXPECT_FALSE(large.has_spare(mib + 1));
  large.hold(mib + 64 * kib);
  EXPECT_EQ(large.asked, 1);
  EXPECT_GT(large.room(), 0u);
  EXPECT_FALSE(large.has_spare(1));
  EXPECT_TRUE(other.has_spare(mib));
  proxy.hold(7 * mib - 128 * kib);
  EXPECT_TRUE(other.has_spare(64 * kib));
  EXPECT_FALSE(other.has_spare(64 * kib + 1));
  EXPECT_FALSE(proxy.has_spare(64 * kib + 1));
}

TEST_F(account_ledger, ends_the_largest_holder_of_a_peer_past_its_share) {
  holder small(book, first), large(book, first), other(book, second), newcomer(book, first);
  other.hold(mib);
  small.hold(300 * kib);
  large.hold(600 * kib);
  EXPECT_EQ(book.now().ended, 0u);
  newcomer.hold(200 * kib);
  EXPECT_EQ(large.asked, 1);
  EXPECT_EQ(small.asked + newcomer.asked + other.asked, 0);
  EXPECT_EQ(newcomer.leased(), 256 * kib);  // the holder that asks gets it
  // While the largest one ends it counts as free.
  newcomer.hold(400 * kib);
  EXPECT_EQ(small.asked + newcomer.asked, 0);
}

TEST_F(account_ledger, ends_further_holders_when_those_that_end_keep_too_much) {
  holder stuck(book, first), next(book, first);
  stuck.hold(mib + 1);
  EXPECT_EQ(stuck.asked, 1);
  next.hold(900 * kib);
  EXPECT_EQ(next.asked, 0);
  stuck.hold(2 * mib);  // it does not end
  EXPECT_EQ(next.asked, 1);
  EXPECT_EQ(stuck.asked, 1);
}

TEST_F(account_ledger, asks_a_holder_that_stays_again) {
  holder tenant(book, first);
  tenant.hold(2 * mib);
  EXPECT_EQ(tenant.asked, 1);
  tenant.hold(kib);
  tenant.stay();
  tenant.hold(2 * mib);
  EXPECT_EQ(tenant.asked, 2);
}

TEST_F(account_ledger, ends_the_largest_holder_of_the_largest_peer_when_all_is_used) {
  ledger wide({.bytes = mib, .peer_bytes = mib});
  ledger::peer &large = wide.join("large"), &small = wide.join("small"), &none = wide.join("");
  {
    holder first_of_large(wide, large), second_of_large(wide, large), of_small(wide, small),
        of_none(wide, none);
    first_of_large.hold(256 * kib);
    second_of_large.hold(320 * kib);
    of_small.hold(384 * kib);
    EXPECT_EQ(wide.now().ended, 0u);
    of_none.hold(128 * kib);
    EXPECT_EQ(second_of_large.asked, 1);
    EXPECT_EQ(wide.now().ended, 1u);
    EXPECT_FALSE(wide.is_full());
  }
  wide.leave(large);
  wide.leave(small);
  wide.leave(none);
}

TEST_F(account_ledger, gives_no_share_to_the_unnamed_peer) {
  holder tenant(book, unnamed);
  tenant.hold(7 * mib);
  EXPECT_EQ(tenant.asked, 0);
  tenant.hold(8 * mib + 1);
  EXPECT_EQ(tenant.asked, 1);
}

TEST_F(account_ledger, moves_a_lease_to_another_peer) {
  holder tenant(book, unnamed);
  tenant.hold(2 * mib, 2);
  tenant.open(book, first);
  EXPECT_EQ(tenant.asked, 1);  // beyond the share of its new peer
  EXPECT_EQ(unnamed.bytes, 0u);
  EXPECT_EQ(first.bytes, 2 * mib);
  EXPECT_EQ(first.ending_descriptors, 2u);
  tenant.open(book, second);
  EXPECT_EQ(first.ending, 0u);
  EXPECT_EQ(second.ending, 2 * mib);
}

TEST_F(account_ledger, says_how_much_is_left) {
  holder tenant(book, first), other(book, unnamed);
  EXPECT_EQ(tenant.room(), mib);
  tenant.hold(640 * kib);
  EXPECT_EQ(tenant.room(), 384 * kib);
  other.hold(7 * mib + 256 * kib);
  EXPECT_EQ(tenant.room(), 128 * kib);
  EXPECT_EQ(other.room(), 128 * kib);
}

TEST_F(account_ledger, ends_the_holder_of_most_descriptors) {
  holder files(book, first), file(book, first);
  EXPECT_TRUE(book.connect(first, 10));
  EXPECT_TRUE(book.connect(first, 10));
  file.hold(0, 1);
  files.hold(0, 2);
  EXPECT_EQ(files.asked, 0);
  EXPECT_TRUE(book.connect(first, 10));  // in the place of the files
  EXPECT_EQ(files.asked, 1);
  files.hold(0, 0);
  EXPECT_TRUE(book.connect(first, 10));
  EXPECT_TRUE(book.connect(first, 10));
  EXPECT_EQ(file.asked, 1);
  file.hold(0, 0);
  // Connections do not give up descriptors for other connections of the same peer.
  EXPECT_FALSE(book.connect(first, 10));
  EXPECT_TRUE(book.connect(second, 10));
  EXPECT_FALSE(book.connect(second, 1));
  for (int i = 0; i < 5; ++i) book.disconnect(first);
  book.disconnect(second);
  EXPECT_EQ(book.now().descriptors, 0u);
}

// Against a plain sum, over random changes.
TEST_F(account_ledger, always_has_the_sums_of_its_accounts) {
  std::minstd_rand random(1);
  std::vector<holder*> all;
  ledger::peer* const peers[] = {&first, &second, &unnamed};
  for (int i = 0; i < 12; ++i) all.push_back(new holder(book, *peers[i % 3]));
  for (int step = 0; step < 3'000; ++step) {
    holder& chosen = *all[random() % all.size()];
    const auto step_kind = random() % 10;
    if (step_kind == 0) {
      chosen.open(book, *peers[random() % 3]);
    } else if (step_kind == 1) {
      chosen.stay();
    } else {
      chosen.hold(random() % 3 == 0 ? 0 : random() % mib, random() % 3);
    }
    std::size_t bytes = 0, of_first = 0;
    for (const holder* each : all) {
      bytes += each->leased();
      if (each->of() == &first) of_first += each->leased();
    }
    ASSERT_EQ(book.now().bytes, bytes) << step;
    ASSERT_EQ(first.bytes, of_first) << step;
    ASSERT_LE(first.ending, first.bytes) << step;
  }
  for (holder* left : all) delete left;
  EXPECT_EQ(book.now().bytes + book.now().descriptors + first.ending + second.ending, 0u);
}

}  // namespace
}  // namespace troupe::base
