// When memory is out, tell(), post() and spawn() throw std::bad_alloc, and nothing is lost, sent or leaked.
#include <cstdlib>
#include <new>

#include "support/conformance.hpp"

#if !TROUPE_TEST_SLOW  // sanitizers have an operator new of their own

namespace {

// After how many more allocations of this thread the next one fails; -1: none.
constinit thread_local long allocations_left = -1;
constinit thread_local bool failed = false;

void* allocate_or_fail(std::size_t bytes, std::size_t alignment) {
  if (allocations_left == 0) {
    failed = true;
    allocations_left = -1;
    throw std::bad_alloc();
  }
  if (allocations_left > 0) --allocations_left;
  void* block = alignment == 0 ? std::malloc(bytes == 0 ? 1 : bytes)
                               : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate_or_fail(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_fail(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }

namespace troupe::test {
namespace {

class allocation_failure : public conformance {};

// Calls it with the first allocation failing, then with the second, and so on until none fails. How often it failed.
template <class Call>
int fail_everywhere(Call call) {
  for (int failures = 0;; ++failures) {
    allocations_left = failures;
    failed = false;
    bool threw = false;
    try {
      call();
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    allocations_left = -1;
    EXPECT_EQ(threw, failed) << "allocation " << failures << ": a failure that was swallowed";
    if (!failed || failures > 200) return failures;
  }
}

struct counted {
  std::atomic<int>* alive;
  std::vector<int> block;
  std::string text;
  explicit counted(std::atomic<int>* alive) : alive(alive), block(1000), text(100, 'x') { ++*alive; }
  counted(const counted&) = delete;
  ~counted() { --*alive; }
  int handled = 0;
  void take(std::string text_taken, std::shared_ptr<int> token) {
    handled += static_cast<int>(text_taken.size()) + *token;
  }
  void take_large(std::array<char, 2000>, std::shared_ptr<int> token) { handled += *token; }
};

TEST_P(allocation_failure, tell_throws_and_sends_nothing) {
  std::atomic<int> alive{0};
  auto token = std::make_shared<int>(1);
  const std::string text(100, 'y');
  runtime rt(options());
  auto one = rt.spawn<counted>(&alive);
  const int with_text = fail_everywhere([&] { one.tell<&counted::take>(text, token); });
  EXPECT_GE(with_text, 1);
  const int large = fail_everywhere([&] { one.tell<&counted::take_large>(std::array<char, 2000>{}, token); });
  EXPECT_GE(large, 1);
  const int callable = fail_everywhere([&] {
    one.tell([text, token](counted& self) { self.handled += *token; });
  });
  EXPECT_GE(callable, 1);
  int handled = 0;
  one.tell([&handled](counted& self) { handled = self.handled; });
  rt.run();
  EXPECT_EQ(handled, 100 + 1 + 1 + 1) << "each was sent once: when nothing failed";
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(allocation_failure, tell_in_a_handler_throws_there) {
  struct sender {
    ref<counted> to;
    int failures = 0;
    explicit sender(ref<counted> to) : to(std::move(to)) {}
    void send(std::shared_ptr<int> token) {
      const std::string text(100, 'y');
      failures += fail_everywhere([&] { to.tell<&counted::take>(text, token); });
    }
  };
  std::atomic<int> alive{0};
  auto token = std::make_shared<int>(1);
  runtime rt(options());
  auto one = rt.spawn<counted>(&alive);
  auto from = rt.spawn<sender>(one);
  for (int i = 0; i < 10; ++i) from.tell<&sender::send>(token);
  rt.run();
  int handled = 0, failures = 0;
  one.tell([&handled](counted& self) { handled = self.handled; });
  from.tell([&failures](sender& self) { failures = self.failures; });
  rt.run();
  EXPECT_EQ(handled, 10 * 101);
  EXPECT_GE(failures, 10);
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(allocation_failure, post_throws_and_runs_nothing) {
  std::atomic<int> ran{0};
  auto token = std::make_shared<int>(1);
  runtime rt(options());
  const int failures = fail_everywhere([&] {
    rt.post([token, &ran, block = std::array<char, 1000>{}] { ran += block[999] + 1; });
  });
  EXPECT_GE(failures, 1);
  rt.run();
  EXPECT_EQ(ran.load(), 1);
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(allocation_failure, spawn_throws_and_leaves_no_actor) {
  std::atomic<int> alive{0};
  runtime rt(options());
  const int failures = fail_everywhere([&] { static_cast<void>(rt.spawn<counted>(&alive)); });
  EXPECT_GE(failures, 2);
  rt.run();
  EXPECT_EQ(alive.load(), 0);
  for (const spawn_options& where : {spawn_options{.turn = {5, {}}}, on_main()}) {
    static_cast<void>(fail_everywhere([&] { static_cast<void>(rt.spawn<counted>(where, &alive)); }));
    rt.run();
    EXPECT_EQ(alive.load(), 0);
  }
}

TEST_P(allocation_failure, a_pinned_thread_is_started_whole_or_not_at_all) {
  struct resident {
    std::atomic<int>* alive;
    std::thread::id born = std::this_thread::get_id();
    std::atomic<int>* wrong;
    resident(std::atomic<int>* alive, std::atomic<int>* wrong) : alive(alive), wrong(wrong) { ++*alive; }
    ~resident() {
      --*alive;
      if (std::this_thread::get_id() != born) ++*wrong;
    }
  };
  std::atomic<int> alive{0}, wrong{0};
  {
    runtime rt(options());
    std::vector<ref<resident>> kept;
    kept.reserve(1000);
    for (int i = 0; i < 3; ++i) {
      const spawn_options where = pinned("a thread with a name that is not short " + std::to_string(i));
      const int failures = fail_everywhere([&] { kept.push_back(rt.spawn<resident>(where, &alive, &wrong)); });
      EXPECT_GE(failures, 1);
    }
    rt.run();
    EXPECT_EQ(alive.load(), 3);
  }
  EXPECT_EQ(alive.load(), 0);
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(allocation_failure, a_runtime_is_made_whole_or_not_at_all) {
  runtime_options chosen = options();
  chosen.on_error = [](const failure&) {};
  const int failures = fail_everywhere([&] { runtime rt(chosen); });
  EXPECT_GE(failures, 3);
}

TROUPE_TEST_EACH(allocation_failure, each_policy);

}  // namespace
}  // namespace troupe::test

#endif
