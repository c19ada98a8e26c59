// Answers that fail on their way, and asks for whose answers no code waits.
#include <algorithm>
#include <stdexcept>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

class answers : public conformance {};

// The copy after the first `copies` throws.
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

TEST_P(answers, a_null_exception_is_refused_and_the_promise_is_as_it_was) {
  promise<int> one;
  auto later = one.get_future();
  EXPECT_THROW(one.set_exception(nullptr), usage_error);
  EXPECT_FALSE(later.ready());
  one.set_value(3);
  EXPECT_EQ(later.get(), 3);
}

struct asks_itself {
  ref<asks_itself> next;
  promise<int> first;
  void meet(ref<asks_itself> other) { next = std::move(other); }
  future<int> count(int left) {
    return left == 0 ? first.get_future() : next.ask<&asks_itself::count>(left - 1);
  }
  void resolve(int n) { first.set_value(n); }
  void fail() { first.set_exception(std::make_exception_ptr(std::out_of_range("the first"))); }
  void drop() { first = {}; }
};

TEST_P(answers, chains_of_returned_futures_may_have_any_length) {
  constexpr int length = 1'000'000;
  runtime rt(options());
  const auto chain = [&rt] {
    auto one = rt.spawn<asks_itself>();
    one.tell<&asks_itself::meet>(one);
    auto last = one.ask<&asks_itself::count>(fewer(length, 25));
    rt.run();
    EXPECT_FALSE(last.ready());
    return std::pair(one, std::move(last));
  };
  auto [resolved, value] = chain();
  resolved.tell<&asks_itself::resolve>(42);
  auto [failing, error] = chain();
  failing.tell<&asks_itself::fail>();
  auto [broken, none] = chain();
  broken.tell<&asks_itself::drop>();
  auto [stopped, given_up] = chain();
  given_up = {};
  stopped.tell<&asks_itself::resolve>(1);
  rt.run();
  EXPECT_EQ(value.get(), 42);
  EXPECT_THROW(error.get(), std::out_of_range);
  EXPECT_THROW(none.get(), broken_promise);
  for (const auto& one : {resolved, failing, broken, stopped}) one.stop();
  rt.run();
}

TEST_P(answers, a_runtime_ends_with_a_long_chain_of_returned_futures) {
  future<int> last;
  {
    runtime rt(options());
    auto one = rt.spawn<asks_itself>();
    one.tell<&asks_itself::meet>(one);
    last = one.ask<&asks_itself::count>(fewer(300'000, 10));
    rt.run();
  }
  EXPECT_THROW(last.get(), broken_promise);
}

// Outside of actors a callback runs in the call that resolves its future, and resolves the next
// one.
TEST_P(answers, chains_of_callbacks_may_have_any_length) {
  const auto length = static_cast<std::size_t>(fewer(1'000'000, 25));
  std::vector<promise<>> all(length);
  std::vector<std::size_t> called;
  for (std::size_t i = 0; i < length; ++i) {
    all[i].get_future().then([&all, &called, i] {
      called.push_back(i);
      if (i + 1 < all.size()) all[i + 1].set_value();
    });
  }
  all[0].set_value();
  ASSERT_EQ(called.size(), length);
  EXPECT_TRUE(std::is_sorted(called.begin(), called.end()));
}

TEST_P(answers, callbacks_that_nest_a_little_are_called_at_once) {
  std::vector<promise<>> all(64);
  std::size_t returned = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].get_future().then([&, i] {
      EXPECT_EQ(returned, 0u);
      if (i + 1 < all.size()) all[i + 1].set_value();
      ++returned;
      EXPECT_EQ(returned, all.size() - i) << "the inner ones have returned";
    });
  }
  all[0].set_value();
  EXPECT_EQ(returned, all.size());
}

// Callbacks that are nested deeper than the limit run in the order in which their futures were
// resolved.
TEST_P(answers, callbacks_that_branch_deeply_are_each_called_once) {
  struct tree {
    std::vector<int> depths;
    void grow(int depth) {
      depths.push_back(depth);
      for (int child = 0; depth < 80 && child < (depth % 8 == 0 ? 2 : 1); ++child) {
        promise<> one;
        one.get_future().then([this, depth] { grow(depth + 1); });
        one.set_value();
      }
    }
  } grown;
  grown.grow(0);
  EXPECT_EQ(std::count(grown.depths.begin(), grown.depths.end(), 80), 1 << 10);
}

TROUPE_TEST_EACH(answers, all_settings);

}  // namespace
}  // namespace troupe::test
