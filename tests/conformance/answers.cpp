// Answers that go wrong on their way, and asks that nobody waits for.
#include <stdexcept>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

class answers : public conformance {};

// The n-th copy throws.
struct hard_to_copy {
  explicit hard_to_copy(int copies) : left(copies) {}
  hard_to_copy(const hard_to_copy& other) : left(other.left - 1) {
    if (left < 0) throw std::runtime_error("no more copies");
  }
  int left;
  counted here;
};

struct stepper {
  int steps = 0, most_live = 0;
  ref<stepper> other;
  void meet(ref<stepper> partner) { other = std::move(partner); }
  task<std::shared_ptr<counted>> step(int left) {
    ++steps;
    most_live = std::max(most_live, live.load());
    if (left > 0) {
      auto nobody_waits = other.ask<&stepper::step>(left - 1);
    } else {
      other = {};
    }
    co_return std::make_shared<counted>();
  }
  int most() { return most_live; }
  future<int> none() { return {}; }
  task<hard_to_copy> after_a_wait(int copies) {
    hard_to_copy made(copies);
    co_await yield();
    co_return made;
  }
  promise<hard_to_copy> kept;
  future<hard_to_copy> later() { return kept.get_future(); }
  void fire(int copies) {
    const hard_to_copy made(copies);
    kept.set_value(made);
  }
};

TEST_P(answers, asks_that_nobody_waits_for_keep_nothing) {
  constexpr int steps = 300'000;
  int most = 0;
  {
    runtime rt(options());
    const auto one = rt.spawn<stepper>();
    one.tell<&stepper::meet>(one);
    one.ask<&stepper::step>(fewer(steps)).then([](const std::shared_ptr<counted>&) {});
    rt.run();
    one.ask<&stepper::most>().then([&most](int n) { most = n; });
    rt.run();
  }
  EXPECT_LE(most, 3);
  EXPECT_EQ(live.load(), 0);
}

TEST_P(answers, a_future_without_a_result_is_an_error_that_names_the_method) {
  runtime rt(options());
  const auto one = rt.spawn<stepper>();
  auto got = one.ask<&stepper::none>();
  rt.run();
  try {
    got.get();
    FAIL();
  } catch (const usage_error& e) {
    EXPECT_NE(std::string(e.what()).find("none"), std::string::npos) << e.what();
  }
}

TEST_P(answers, a_value_that_cannot_be_copied_on_its_way_is_an_error_of_the_ask) {
  for (int copies = 0; copies < 8; ++copies) {
    runtime rt(options());
    const auto one = rt.spawn<stepper>();
    auto made = one.ask<&stepper::after_a_wait>(copies);
    auto passed_on = one.ask<&stepper::later>();
    one.tell<&stepper::fire>(copies);
    rt.run();
    for (auto* got : {&made, &passed_on}) {
      try {
        EXPECT_GE(got->get().left, 0);
      } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "no more copies");
      }
    }
  }
  EXPECT_EQ(live.load(), 0);
}

TEST_P(answers, a_callback_that_cannot_be_kept_leaves_the_future_as_it_is) {
  {
    runtime rt(options());
    const auto one = rt.spawn<stepper>();
    auto got = one.ask<&stepper::step>(0);
    const hard_to_copy last(0);
    EXPECT_THROW(got.then([last](const std::shared_ptr<counted>&) {}), std::runtime_error);
    EXPECT_TRUE(got.valid());
    rt.run();
    EXPECT_NE(got.get(), nullptr);
  }
  EXPECT_EQ(live.load(), 0);
}

TROUPE_TEST_EACH(answers, all_settings);

}  // namespace
}  // namespace troupe::test
