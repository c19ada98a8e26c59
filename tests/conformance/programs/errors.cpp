// P8: no error is lost. A handler that throws neither blocks its actor nor drops the messages
// behind it.
#include <latch>
#include <mutex>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

class p8_errors : public conformance {};

struct numbered : std::runtime_error {
  int number;
  explicit numbered(int number)
      : std::runtime_error("number " + std::to_string(number)), number(number) {}
};

struct fragile {
  std::atomic<int>* handled;
  explicit fragile(std::atomic<int>* handled) : handled(handled) {}
  void work() { ++*handled; }
  void fail(int number) { throw numbered(number); }
  void fail_with(std::unique_ptr<int> token) { throw numbered(*token); }
};

// Returns the number of the exception that run() threw; 0 when it threw none.
int number_thrown_by(runtime& rt) {
  try {
    rt.run();
  } catch (const numbered& e) {
    return e.number;
  }
  return 0;
}

int number_in(const failure& one) {
  try {
    std::rethrow_exception(one.what);
  } catch (const numbered& e) {
    return e.number;
  }
}

TEST_P(p8_errors, a_throwing_handler_does_not_stop_its_actor) {
  for (const thread_kind& where : thread_kinds("fragile")) {
    std::atomic<int> handled{0};
    runtime rt(options());
    auto one = spawn_on<fragile>(rt, where, unchecked{&handled});
    for (int i = 0; i < 10; ++i) {
      one.tell<&fragile::work>();
      if (i == 4) one.tell<&fragile::fail>(7);
    }
    EXPECT_EQ(number_thrown_by(rt), 7);
    EXPECT_EQ(handled.load(), 10);
    one.tell<&fragile::work>();
    EXPECT_EQ(number_thrown_by(rt), 0);
    EXPECT_EQ(handled.load(), 11);
    EXPECT_EQ(rt.metrics().dead_letters, 0u);
  }
}

TEST_P(p8_errors, a_throwing_handlers_arguments_are_destroyed) {
  std::atomic<int> handled{0};
  auto token = std::make_shared<int>(3);
  runtime rt(options());
  auto one = rt.spawn<fragile>(&handled);
  one.tell([token](fragile& self) {
    static_cast<void>(token);
    self.fail(1);
  });
  one.tell<&fragile::fail_with>(std::make_unique<int>(2));
  EXPECT_EQ(number_thrown_by(rt), 1);
  EXPECT_EQ(number_thrown_by(rt), 2);
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(p8_errors, with_policy_stop_the_messages_behind_become_dead_letters) {
  for (const thread_kind& where : thread_kinds("fragile", {.on_error = error_policy::stop})) {
    std::atomic<int> handled{0};
    runtime rt(options());
    auto one = spawn_on<fragile>(rt, where, unchecked{&handled});
    one.tell<&fragile::work>();
    one.tell<&fragile::fail>(7);
    one.tell<&fragile::work>();
    one.tell<&fragile::work>();
    EXPECT_EQ(number_thrown_by(rt), 7);
    EXPECT_EQ(handled.load(), 1);
    EXPECT_EQ(rt.metrics().dead_letters, 2u);
    one.tell<&fragile::work>();
    rt.run();
    EXPECT_EQ(rt.metrics().dead_letters, 3u);
  }
}

TEST_P(p8_errors, run_throws_the_first_and_errors_has_the_rest_in_order) {
  std::atomic<int> handled{0};
  runtime rt(options());
  auto one = rt.spawn<fragile>(&handled);
  for (int i = 1; i <= 5; ++i) one.tell<&fragile::fail>(i);
  EXPECT_EQ(number_thrown_by(rt), 1);
  EXPECT_EQ(number_in(rt.thrown()), 1);
  const std::vector<failure> rest = rt.errors();
  ASSERT_EQ(rest.size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(number_in(rest[static_cast<unsigned>(i)]), i + 2);
  // Two failures are left: two successive runs throw one each.
  EXPECT_EQ(number_thrown_by(rt), 2);
  EXPECT_EQ(number_thrown_by(rt), 3);
  rt.clear_errors();
  EXPECT_EQ(number_thrown_by(rt), 0);
  EXPECT_TRUE(rt.errors().empty());
}

TEST_P(p8_errors, the_order_is_that_of_the_failures_across_actors) {
  runtime rt(options());
  // Each actor makes the next one fail by a message, after its own failure.
  struct careful {
    ref<careful> next;
    std::atomic<int>* failed;
    careful(ref<careful> next, std::atomic<int>* failed) : next(std::move(next)), failed(failed) {}
    void fail(int number) { throw numbered(number); }
    void go(int number) {
      auto me = self(this);
      me.template tell<&careful::fail>(number);
      me.template tell<&careful::pass>(number + 1);
    }
    void pass(int number) {
      if (next) next.template tell<&careful::go>(number);
    }
  };
  std::atomic<int> failed{0};
  ref<careful> head;
  for (int i = 0; i < 20; ++i) {
    head = spawn_on<careful>(rt, i % 5 == 3 ? thread_kind(pinned("careful")) : thread_kind(), head,
                             unchecked{&failed});
  }
  head.tell<&careful::go>(1);
  for (int i = 1; i <= 20; ++i) EXPECT_EQ(number_thrown_by(rt), i);
  EXPECT_EQ(number_thrown_by(rt), 0);
}

TEST_P(p8_errors, five_failing_actors_surface_five_errors) {
  std::atomic<int> handled{0};
  std::atomic<int> observed{0};
  runtime_options chosen = options();
  chosen.on_error = [&](const failure&) { ++observed; };
  runtime rt(chosen);
  std::vector<ref<fragile>> all;
  for (int i = 0; i < 5; ++i) all.push_back(rt.spawn<fragile>(&handled));
  for (int i = 0; i < 5; ++i) all[static_cast<unsigned>(i)].tell<&fragile::fail>(1 << i);
  int sum = 0;
  for (int i = 0; i < 5; ++i) sum += number_thrown_by(rt);
  EXPECT_EQ(sum, 31);
  EXPECT_EQ(number_thrown_by(rt), 0);
  EXPECT_EQ(observed.load(), 5);
}

TEST_P(p8_errors, a_failure_names_the_actor_and_the_method) {
  std::atomic<int> handled{0};
  runtime rt(options());
  auto one = rt.spawn<fragile>(&handled);
  one.tell<&fragile::fail>(1);
  EXPECT_EQ(number_thrown_by(rt), 1);
  EXPECT_NE(rt.thrown().actor.find("fragile"), std::string::npos) << rt.thrown().actor;
  EXPECT_NE(rt.thrown().method.find("fragile::fail"), std::string::npos) << rt.thrown().method;
}

TEST_P(p8_errors, a_posted_procedure_that_throws_is_recorded) {
  runtime rt(options());
  rt.post([] { throw numbered(9); });
  EXPECT_EQ(number_thrown_by(rt), 9);
  EXPECT_EQ(rt.thrown().actor, "");
  EXPECT_EQ(rt.thrown().method, "post");
}

TEST_P(p8_errors, what_is_thrown_need_not_be_a_standard_exception) {
  runtime rt(options());
  rt.post([] { throw 42; });
  EXPECT_THROW(rt.run(), int);
}

TEST_P(p8_errors, a_pool_actors_constructor_throws_at_spawn) {
  struct not_begun {
    std::unique_ptr<int> held = std::make_unique<int>(1);
    explicit not_begun(int number) { throw numbered(number); }
    void work() {}
  };
  runtime rt(options());
  EXPECT_THROW(static_cast<void>(rt.spawn<not_begun>(3)), numbered);
  EXPECT_EQ(number_thrown_by(rt), 0);
  EXPECT_TRUE(rt.errors().empty());
}

TEST_P(p8_errors, a_pinned_actors_constructor_that_throws_is_a_failure_and_its_mail_dead) {
  struct not_begun {
    std::shared_ptr<int> held;
    not_begun(std::shared_ptr<int> held, int number) : held(std::move(held)) {
      throw numbered(number);
    }
    void work() {}
  };
  auto token = std::make_shared<int>(1);
  for (const on_thread& where : {pinned("not_begun"), on_main()}) {
    runtime rt(options());
    auto one = rt.spawn<not_begun>(where, token, 3);
    one.tell<&not_begun::work>();
    one.tell<&not_begun::work>();
    EXPECT_EQ(number_thrown_by(rt), 3);
    EXPECT_EQ(rt.thrown().method, "constructor");
    EXPECT_EQ(rt.metrics().dead_letters, 2u);
    EXPECT_EQ(token.use_count(), 1);
  }
}

struct stillborn {
  template <class Keeper>
  stillborn(const ref<Keeper>& keeper, int number) {
    self(this).tell<&stillborn::work>();
    keeper.template tell<&Keeper::keep>(self(this));
    throw numbered(number);
  }
  void work() {}
};
struct stillborn_keeper {
  ref<stillborn> kept;
  void keep(ref<stillborn> one) { kept = std::move(one); }
  void use() { kept.tell<&stillborn::work>(); }
  void drop() { kept = {}; }
};

TEST_P(p8_errors, a_constructor_that_sent_its_own_ref_away_may_throw) {
  runtime rt(options());
  auto keeper = rt.spawn<stillborn_keeper>();
  EXPECT_THROW(static_cast<void>(rt.spawn<stillborn>(keeper, 3)), numbered);
  rt.run();
  EXPECT_EQ(rt.metrics().dead_letters, 1u) << "what the constructor sent to itself";
  keeper.tell<&stillborn_keeper::use>();
  rt.run();
  EXPECT_EQ(rt.metrics().dead_letters, 2u);
  keeper.tell<&stillborn_keeper::drop>();
  rt.run();
}

TEST_P(p8_errors, an_error_handler_hears_of_each_failure_as_it_happens) {
  std::mutex mutex;
  std::vector<int> heard;
  runtime_options chosen = options();
  chosen.on_error = [&](const failure& one) {
    std::lock_guard lock(mutex);
    heard.push_back(number_in(one));
  };
  runtime rt(chosen);
  std::atomic<int> handled{0};
  auto one = rt.spawn<fragile>(&handled);
  one.tell<&fragile::fail>(1);
  one.tell<&fragile::fail>(2);
  EXPECT_EQ(number_thrown_by(rt), 1);
  EXPECT_EQ(heard, (std::vector<int>{1, 2}));
}

TEST_P(p8_errors, failures_before_run_are_thrown_by_it) {
  if (!threaded()) GTEST_SKIP() << "needs threads: nothing runs before run()";
  runtime rt(options());
  std::latch failed(1);
  rt.post([&] {
    struct at_end {
      std::latch& latch;
      ~at_end() { latch.count_down(); }
    } guard{failed};
    throw numbered(4);
  });
  failed.wait();
  EXPECT_EQ(number_thrown_by(rt), 4);
}

TEST_P(p8_errors, failures_that_nobody_asks_for_do_no_harm) {
  runtime rt(options());
  rt.post([] { throw numbered(4); });
}

TEST_P(p8_errors, many_failures_from_many_actors_are_all_recorded) {
  std::atomic<int> handled{0};
  const int each = fewer(200);
  runtime_options chosen = options();
  chosen.failures_kept = 20'000;
  chosen.failure_bytes = std::size_t{64} << 20;
  runtime rt(chosen);
  for (int i = 0; i < 50; ++i) {
    auto one = i % 10 == 0 ? rt.spawn<fragile>(pinned("many"), unchecked{&handled})
                           : rt.spawn<fragile>(&handled);
    for (int k = 0; k < each; ++k) {
      one.tell<&fragile::fail>(1);
      one.tell<&fragile::work>();
    }
  }
  EXPECT_EQ(number_thrown_by(rt), 1);
  EXPECT_EQ(rt.errors().size(), static_cast<std::size_t>(50 * each - 1));
  EXPECT_EQ(handled.load(), 50 * each);
}

TROUPE_TEST_EACH(p8_errors, all_settings);

}  // namespace
}  // namespace troupe::test
