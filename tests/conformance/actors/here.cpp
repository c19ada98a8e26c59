// spawn() and now() inside a handler use the runtime that the handler runs in.
#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class here : public conformance {};

struct leaf {
  int weight = 1;
  explicit leaf(int of) : weight(of) {}
  int weigh() const { return weight; }
};
task<int> weigh(ref<leaf> one) { co_return co_await one.ask<&leaf::weigh>(); }
struct tree {
  ref<leaf> first = troupe::spawn<leaf>(1);  // in a constructor
  task<int> grow(int n) {
    int sum = co_await first.ask<&leaf::weigh>();
    for (int i = 0; i < n; ++i) {
      auto one = troupe::spawn<leaf>({.mailbox = {.messages = 1}}, 2);
      sum += co_await troupe::spawn(weigh(one));
    }
    co_return sum;
  }
  task<std::chrono::nanoseconds> nap() {
    const auto before = troupe::now();
    co_await sleep_for(2ms);
    co_return troupe::now() - before;
  }
};

TEST_P(here, a_handler_spawns_and_reads_the_clock_without_a_runtime_at_hand) {
  runtime rt(options());
  for (const thread_kind& where : thread_kinds("h")) {
    auto one = spawn_on<tree>(rt, where);
    auto sum = one.ask<&tree::grow>(10);
    auto span = one.ask<&tree::nap>();
    rt.run();
    EXPECT_EQ(sum.get(), 21);
    EXPECT_GE(span.get(), 2ms);
  }
  EXPECT_LT(rt.now(), 1h);
}

TEST_P(here, a_posted_procedure_spawns_too) {
  runtime rt(options());
  std::atomic<int> sum = 0;
  const auto count = [&sum] {
    troupe::spawn([](std::atomic<int>& to) -> task<> {
      const int weight = co_await troupe::spawn<leaf>(3).ask<&leaf::weigh>();
      to += weight;
    }(sum));
    EXPECT_GE(troupe::now(), 0ns);
  };
  rt.post(count);
  rt.after(1ms, count);
  rt.run();
  EXPECT_EQ(sum, 6);
}

TEST_P(here, elsewhere_they_say_what_to_do) {
  EXPECT_THROW(troupe::spawn<leaf>(1), usage_error);
  EXPECT_THROW(static_cast<void>(troupe::now()), usage_error);
  EXPECT_THROW(static_cast<void>(troupe::spawn(weigh({}))), usage_error);
}

TROUPE_TEST_EACH(here, all_settings);

}  // namespace
}  // namespace troupe::test
