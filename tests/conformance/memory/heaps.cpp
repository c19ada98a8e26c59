// Actors and tasks with a context of their own: this_context() in each of their parts, and the time
// when their memory is freed.
#include <memory_resource>

#include "support/conformance.hpp"
#include "support/counted.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class heaps : public conformance {};

const spawn_options own{.context = context_options{.name = "own"}};
const spawn_options rolled_back{.context = context_options{.name = "own"}, .rolls_back = true};

struct bystander {
  context* seen = current_context();
};

struct diary {
  context* const mine = &this_context();
  std::pmr::vector<int> pages{mine};
  std::shared_ptr<std::atomic<int>> wrong, scraps;
  diary(std::shared_ptr<std::atomic<int>> errors, std::shared_ptr<std::atomic<int>> left)
      : wrong(std::move(errors)), scraps(std::move(left)) {
    pages.resize(100, 7);
  }
  ~diary() { check(); }
  void check() {
    if (current_context() != mine || owner_of(pages.data()) != mine || pages.front() != 7) ++*wrong;
  }
  struct scrap {
    std::shared_ptr<std::atomic<int>> of;
    explicit scrap(std::shared_ptr<std::atomic<int>> count) : of(std::move(count)) { ++*of; }
    scrap(const scrap&) = delete;
    ~scrap() { --*of; }
  };
  void write() {
    check();
    static_cast<void>(this_context().allocate(10'000));
    static_cast<void>(this_context().make<scrap>(scraps));
  }
  void count_scraps(int expected) {
    if (scraps->load() != expected) ++*wrong;
  }
  task<> write_slowly(event until) {
    static_cast<void>(mine->make<scrap>(scraps));
    co_await yield();
    check();
    co_await until.wait();
    check();
    count_scraps(1);
  }
  void fail() {
    auto text = this_context().make<std::pmr::string>(1'000, 'x');
    struct error : std::exception {
      const char* text;
      explicit error(const char* of) : text(of) {}
      const char* what() const noexcept override { return text; }
    };
    throw error(text->c_str());
  }
  void construct_other(runtime& rt) {
    auto other = rt.spawn<bystander>();
    other.tell([errors = wrong](bystander& self) {
      if (self.seen != nullptr || current_context() != nullptr) ++*errors;
    });
    check();
  }
  std::size_t bytes() { return this_context().bytes(); }
};

struct counts {
  std::shared_ptr<std::atomic<int>> wrong = std::make_shared<std::atomic<int>>(0),
                                    scraps = std::make_shared<std::atomic<int>>(0);
};

TEST_P(heaps, this_context_is_the_actors_own_in_all_of_its_parts) {
  const counts of;
  const auto before = count_contexts();
  {
    runtime rt(options());
    for (const thread_kind& where : thread_kinds("own", own)) {
      auto one = spawn_on<diary>(rt, where, of.wrong, of.scraps);
      event go;
      for (int i = 0; i < 10; ++i) one.tell<&diary::write>();
      one.tell<&diary::count_scraps>(10);
      rt.run();
      EXPECT_EQ(of.scraps->load(), 10) << "they stay as long as the actor";
      one = {};
      rt.run();
      EXPECT_EQ(of.scraps->load(), 0);
    }
  }
  EXPECT_EQ(of.wrong->load(), 0);
  EXPECT_EQ(count_contexts().active, before.active);
  EXPECT_EQ(count_contexts().bytes, before.bytes);
}

TEST_P(heaps, what_a_handler_allocated_goes_when_it_has_ended) {
  const counts of;
  runtime rt(options());
  for (const thread_kind& where : thread_kinds("own", rolled_back)) {
    auto one = spawn_on<diary>(rt, where, of.wrong, of.scraps);
    event go;
    for (int i = 0; i < 2'000; ++i) {
      one.tell<&diary::write>();
      one.tell<&diary::count_scraps>(0);
    }
    one.tell<&diary::write_slowly>(go);  // this handler's memory stays while it waits
    one.tell<&diary::write>();
    one.tell<&diary::count_scraps>(0);
    rt.after(1ms, [go] { go.set(); });
    auto bytes = one.ask<&diary::bytes>();
    rt.run();
    EXPECT_LE(bytes.get(), std::size_t{1} << 20) << "2,000 handlers took 10,000 bytes each";
    EXPECT_EQ(of.scraps->load(), 0);
  }
  EXPECT_EQ(of.wrong->load(), 0);
}

TEST_P(heaps, an_actor_without_one_has_none_wherever_it_is_constructed) {
  const counts of;
  runtime rt(options());
  auto one = rt.spawn<diary>(own, of.wrong, of.scraps);
  one.tell([&rt](diary& self) { self.construct_other(rt); });
  rt.run();
  EXPECT_EQ(of.wrong->load(), 0);
  EXPECT_EQ(current_context(), nullptr);
}

TEST_P(heaps, a_failure_keeps_what_it_refers_to_until_it_was_delivered) {
  const counts of;
  runtime rt(options());
  auto one = rt.spawn<diary>(rolled_back, of.wrong, of.scraps);
  one.tell<&diary::fail>();
  for (int i = 0; i < 100; ++i) one.tell<&diary::write>();
  try {
    rt.run();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::exception& error) {
    EXPECT_EQ(std::string(error.what()), std::string(1'000, 'x'));
  }
  EXPECT_EQ(of.wrong->load(), 0);
  EXPECT_EQ(of.scraps->load(), 0);
}

TEST_P(heaps, an_actor_that_is_constructed_anew_begins_with_an_empty_one) {
  const counts of;
  runtime rt(options());
  auto one = rt.spawn<diary>({.on_error = error_policy::restart, .context = context_options{}},
                             of.wrong, of.scraps);
  for (int i = 0; i < 50; ++i) one.tell<&diary::write>();
  one.tell<&diary::fail>();
  one.tell<&diary::write>();
  EXPECT_THROW(rt.run(), std::exception);
  rt.run();
  EXPECT_EQ(of.scraps->load(), 51) << "the failure may refer to the first 50";
  rt.post([] { throw std::runtime_error("another one"); });
  EXPECT_THROW(rt.run(), std::runtime_error);
  EXPECT_EQ(of.scraps->load(), 1);
  EXPECT_EQ(of.wrong->load(), 0);
}

struct ledger {
  static constexpr bool reentrant = true;
  int open = 0;
  std::shared_ptr<std::atomic<int>> wrong;
  explicit ledger(std::shared_ptr<std::atomic<int>> errors) : wrong(std::move(errors)) {}
  task<> book(int amount, event until) {
    auto entry = this_context().make<std::pmr::vector<int>>(1'000, amount);
    co_await until.wait();
    if (entry->back() != amount || entry->front() != amount) ++*wrong;
    co_await yield();
    if (current_context() != owner_of(entry->data())) ++*wrong;
  }
  std::size_t bytes() { return this_context().bytes(); }
};

TEST_P(heaps, of_a_reentrant_actor_it_is_rolled_back_when_no_call_waits) {
  const counts of;
  runtime rt(options());
  auto one = rt.spawn<ledger>(rolled_back, of.wrong);
  for (int round = 0; round < 20; ++round) {
    event go;
    for (int i = 0; i < 20; ++i) one.tell<&ledger::book>(i, go);
    rt.after(10us, [go] { go.set(); });
    rt.run();
  }
  auto bytes = one.ask<&ledger::bytes>();
  rt.run();
  EXPECT_LE(bytes.get(), std::size_t{1} << 20);
  EXPECT_EQ(of.wrong->load(), 0);
}

task<int> letters(std::string text, std::shared_ptr<std::atomic<int>> wrong) {
  context* const mine = &this_context();
  std::pmr::vector<char> kept(mine);
  for (const char one : text) {
    kept.push_back(one);
    co_await yield();
    if (current_context() != mine) ++*wrong;
    co_await sleep_for(1us);
    if (&this_context() != mine) ++*wrong;
  }
  co_return static_cast<int>(kept.size());
}

TEST_P(heaps, a_task_has_its_own_after_each_wait) {
  const counts of;
  const auto before = count_contexts();
  {
    runtime rt(options());
    std::vector<future<int>> all;
    for (int i = 0; i < 10; ++i)
      all.push_back(
          rt.spawn(context_options{.name = "letters"}, letters(std::string(20, 'a'), of.wrong)));
    rt.run();
    for (auto& one : all) EXPECT_EQ(one.get(), 20);
    auto never = rt.spawn(context_options{}, letters(std::string(20, 'b'), of.wrong));
  }
  EXPECT_EQ(of.wrong->load(), 0);
  EXPECT_EQ(count_contexts().bytes, before.bytes);
  EXPECT_EQ(count_contexts().active, before.active);
}

TEST_P(heaps, what_cannot_be_is_refused) {
  runtime rt(options());
  EXPECT_THROW(rt.spawn<bystander>({.rolls_back = true}), option_error);
  EXPECT_THROW(rt.activate({.context = context_options{}}, std::make_unique<bystander>()),
               option_error);
  EXPECT_THROW(rt.spawn<bystander>({.context = context_options{.bytes_max = 10}}), option_error);
}

struct keeper {
  std::pmr::vector<int> all{&this_context()};
  void add(int n) { all.push_back(n); }
  int count() { return static_cast<int>(all.size()); }
};

// An object that was moved out would still refer to the context, which ends with the actor.
TEST_P(heaps, an_object_is_not_taken_out_of_its_context) {
  runtime rt(options());
  auto one = rt.spawn<keeper>({.context = context_options{}});
  one.tell<&keeper::add>(1);
  auto taken = one.consume();
  rt.run();
  EXPECT_THROW(taken.get(), usage_error);
  one.tell<&keeper::add>(2);
  auto count = one.ask<&keeper::count>();
  rt.run();
  EXPECT_EQ(count.get(), 2) << "it goes on";
}

struct greedy {
  void take() { static_cast<void>(this_context().allocate(std::size_t{1} << 20)); }
};

TEST_P(heaps, a_full_one_is_the_handlers_failure) {
  runtime rt(options());
  auto one =
      rt.spawn<greedy>({.context = context_options{.bytes_max = 1 << 16}, .rolls_back = true});
  one.tell<&greedy::take>();
  EXPECT_THROW(rt.run(), context_full);
}

TROUPE_TEST_EACH(heaps, all_settings);

}  // namespace
}  // namespace troupe::test
