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
  static std::string refusal(const node& checked_node) {
    try {
      check_references(&checked_node, sizeof checked_node, "node");
    } catch (const foreign_context_error& found) {
      return found.what();
    }
    return {};
  }
  owned_context work = make_context({.name = "first"}), other = make_context({.name = "second"});
};

TEST_F(check, what_is_as_old_or_elsewhere_is_let_through) {
  auto older = work->make<node>();
  auto newer = work->make<node>(1, older.get());
  older->to = newer.get();
  node local;
  EXPECT_EQ(refusal(*older) + refusal(*newer) + refusal(local), "");
  older->to = &local;
  EXPECT_EQ(refusal(*older), "");
}

TEST_F(check, another_context_is_named_with_ones_own) {
  auto own = work->make<node>();
  auto foreign = other->make<node>();
  own->to = foreign.get();
  EXPECT_NE(refusal(*own).find("in context " + std::to_string(work->number()) +
                               " (first) would refer to context " +
                               std::to_string(other->number()) + " (second)"),
            std::string::npos);
  EXPECT_NE(refusal({1, own.get()}).find("in no context"), std::string::npos);
}

TEST_F(check, what_is_newer_than_a_snapshot_is_found) {
  auto older = work->make<node>();
  snapshot taken(*work);
  auto newer = work->make<node>(1, older.get());
  EXPECT_EQ(refusal(*newer), "") << "older memory lives longer";
  older->to = newer.get();
  EXPECT_NE(refusal(*older).find("newer than a snapshot of context"), std::string::npos);
  static_cast<void>(work->allocate(100'000));
  auto three = work->make<node>();
  older->to = three.get();
  EXPECT_NE(refusal(*older), "") << "in another block";
}

TEST_F(check, what_was_persisted_is_let_through) {
  auto two = other->make<node>();
  auto kept = persist(two);
  EXPECT_EQ(refusal({1, kept.get()}), "");
}

}  // namespace
}  // namespace troupe::contexts
