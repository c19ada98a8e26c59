#include "troupe/context/check.hpp"

#include <gtest/gtest.h>

#include <string>

#include "context/current_context.hpp"
#include "troupe/base/error.hpp"
#include "troupe/context/persist.hpp"
#include "troupe/context/snapshot.hpp"

namespace troupe::contexts {
namespace {

struct node {
  int number = 0;
  const void* to = nullptr;
};

class check : public testing::Test {
 protected:
  void SetUp() override {
    if (!checked) GTEST_SKIP() << "needs a checked build: not a checked build";
  }
  static std::string refusal(const node& of) {
    try {
      check_references(&of, sizeof of, "node");
    } catch (const foreign_context_error& found) {
      return found.what();
    }
    return {};
  }
  owned_context work = make_context({.name = "first"}), other = make_context({.name = "second"});
};

TEST_F(check, what_is_as_old_or_elsewhere_is_let_through) {
  auto one = work->make<node>();
  auto two = work->make<node>(1, one.get());
  one->to = two.get();
  node local;
  EXPECT_EQ(refusal(*one) + refusal(*two) + refusal(local), "");
  one->to = &local;
  EXPECT_EQ(refusal(*one), "");
}

TEST_F(check, another_context_is_named_with_ones_own) {
  auto one = work->make<node>();
  auto two = other->make<node>();
  one->to = two.get();
  EXPECT_NE(refusal(*one).find("in context " + std::to_string(work->number()) +
                               " (first) would refer to context " +
                               std::to_string(other->number()) + " (second)"),
            std::string::npos);
  EXPECT_NE(refusal({1, one.get()}).find("in no context"), std::string::npos);
}

TEST_F(check, what_is_newer_than_a_snapshot_is_found) {
  auto one = work->make<node>();
  snapshot here(*work);
  auto two = work->make<node>(1, one.get());
  EXPECT_EQ(refusal(*two), "") << "older memory lives longer";
  one->to = two.get();
  EXPECT_NE(refusal(*one).find("newer than a snapshot of context"), std::string::npos);
  static_cast<void>(work->allocate(100'000));
  auto three = work->make<node>();
  one->to = three.get();
  EXPECT_NE(refusal(*one), "") << "in another block";
}

TEST_F(check, what_was_persisted_is_let_through) {
  auto two = other->make<node>();
  auto kept = persist(two);
  EXPECT_EQ(refusal({1, kept.get()}), "");
}

}  // namespace
}  // namespace troupe::contexts
