// When memory has run out, tell(), post() and spawn() throw std::bad_alloc; then nothing was sent,
// and nothing is lost or leaked. Work that has begun, and work that needs no memory of its own,
// continues.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <latch>
#include <new>
#include <numeric>
#include <optional>
#include <thread>

#include "memory/stable_pool.hpp"
#include "support/conformance.hpp"

#if !TROUPE_TEST_SLOW  // sanitizers have an operator new of their own

namespace {

// The number of allocations of this thread that still succeed; -1: all of them. The next one fails,
// and if `lasts` is set, all later ones fail, too.
constinit thread_local long allocations_left = -1;
constinit thread_local bool lasts = false;
constinit thread_local bool failed = false;

void* allocate_or_fail(std::size_t bytes, std::size_t alignment) {
  if (allocations_left == 0) {
    failed = true;
    if (!lasts) allocations_left = -1;
    throw std::bad_alloc();
  }
  if (allocations_left > 0) --allocations_left;
  void* block = alignment == 0 ? std::malloc(bytes == 0 ? 1 : bytes)
                               : std::aligned_alloc(
                                     alignment, (bytes + alignment - 1) / alignment * alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate_or_fail(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_fail(bytes, static_cast<std::size_t>(alignment));
}
// Not inlined: otherwise GCC sees memory of `new` given to free() and warns of a mismatch.
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  std::free(block);
}

namespace troupe::test {
namespace {

class allocation_failure : public conformance {};

void run_out_of_memory_after(long allocations) {
  allocations_left = allocations;
  lasts = true;
  failed = false;
}
void have_memory_again() {
  allocations_left = -1;
  lasts = false;
}

// Calls the function again and again: with only the first allocation failing, then with all from
// the first one on, then the same from the second one on, and so on, until it succeeds because no
// allocation failed or because it could do without. Returns how often it failed.
template <class Call>
int fail_everywhere(Call call) {
  int failures = 0;
  for (long at = 0; at < 200; ++at) {
    for (const bool lasting : {false, true}) {
      run_out_of_memory_after(at);
      lasts = lasting;
      bool threw = false;
      try {
        call();
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      have_memory_again();
      if (!threw) return failures;
      EXPECT_TRUE(failed) << "at allocation " << at;
      ++failures;
    }
  }
  ADD_FAILURE() << "it never succeeds";
  return failures;
}

struct counted {
  std::atomic<int>* alive;
  std::vector<int> block;
  std::string text;
  explicit counted(std::atomic<int>* alive) : alive(alive), block(1000), text(100, 'x') {
    ++*alive;
  }
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
  const int large =
      fail_everywhere([&] { one.tell<&counted::take_large>(std::array<char, 2000>{}, token); });
  EXPECT_GE(large, 1);
  const int callable =
      fail_everywhere([&] { one.tell([text, token](counted& self) { self.handled += *token; }); });
  EXPECT_GE(callable, 1);
  int handled = 0;
  one.tell([&handled](counted& self) { handled = self.handled; });
  rt.run();
  EXPECT_EQ(handled, 100 + 1 + 1 + 1) << "each was sent once: when nothing failed";
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(allocation_failure, what_is_promoted_or_submitted_is_whole_or_not_at_all) {
  const context_counters before = count_contexts();
  auto token = std::make_shared<int>(1);
  const std::string text(100, 'y');
  std::atomic<int> calls{0};
  {
    runtime rt(options());
    owned_context work = make_context();
    auto words = work->make<std::pmr::vector<std::pmr::string>>(3, std::pmr::string(100, 'z'));
    EXPECT_GE(fail_everywhere([&] { static_cast<void>(promote(words)); }), 4);
    EXPECT_GE(fail_everywhere([&] { static_cast<void>(auto_escape(words)); }), 5);
    fail_everywhere([&] { static_cast<void>(persist(words)); });
    EXPECT_GE(fail_everywhere([&] {
                troupe::submit(
                    rt, [&calls](const std::string&, const std::shared_ptr<int>&) { ++calls; },
                    text, token);
              }),
              1);
    guarded<int> number(0);
    auto inside = number.try_write();
    future<writing<int>> next;
    EXPECT_GE(fail_everywhere([&] { next = number.write(); }), 1);
    inside.reset();
    EXPECT_TRUE(next.ready()) << "those whose wait could not be written down are not waited for";
    rt.run();
  }
  EXPECT_EQ(calls, 1) << "when nothing failed";
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_EQ(count_contexts().active, before.active);
  EXPECT_EQ(count_contexts().persisted, before.persisted);
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
  const int failures = fail_everywhere(
      [&] { rt.post([token, &ran, block = std::array<char, 1000>{}] { ran += block[999] + 1; }); });
  EXPECT_GE(failures, 1);
  rt.run();
  EXPECT_EQ(ran.load(), 1);
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(allocation_failure, spawn_throws_and_leaves_no_actor) {
  std::atomic<int> alive{0};
  runtime rt(options());
  ref<counted> made;  // dropped when there is memory again
  const int failures = fail_everywhere([&] { made = rt.spawn<counted>(&alive); });
  EXPECT_GE(failures, 2);
  made = {};
  rt.run();
  EXPECT_EQ(alive.load(), 0);
  for (const thread_kind& where :
       {thread_kind(spawn_options{.turn = {5, {}}}), thread_kind(on_main())}) {
    static_cast<void>(
        fail_everywhere([&] { made = spawn_on<counted>(rt, where, unchecked{&alive}); }));
    made = {};
    rt.run();
    EXPECT_EQ(alive.load(), 0);
  }
}

TEST_P(allocation_failure, an_actor_that_could_not_be_told_of_its_last_ref_ends_with_its_runtime) {
  constexpr int many = 2000;  // more blocks than any thread keeps in its magazines
  std::atomic<int> alive{0};
  {
    runtime rt(options());
    std::vector<ref<counted>> kept;
    for (int i = 0; i < many; ++i) kept.push_back(rt.spawn<counted>(&alive));
    run_out_of_memory_after(0);
    kept.clear();
    have_memory_again();
    rt.run();  // actors that could be told with a kept block end here
  }
  EXPECT_EQ(alive.load(), 0);
}

TEST_P(allocation_failure, a_pinned_thread_is_started_whole_or_not_at_all) {
  struct resident {
    std::atomic<int>* alive;
    std::thread::id born = std::this_thread::get_id();
    std::atomic<int>* wrong;
    resident(std::atomic<int>* alive, std::atomic<int>* wrong) : alive(alive), wrong(wrong) {
      ++*alive;
    }
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
      const thread_kind where =
          pinned("a thread with a name that is not short " + std::to_string(i));
      const int failures = fail_everywhere([&] {
        kept.push_back(spawn_on<resident>(rt, where, unchecked{&alive}, unchecked{&wrong}));
      });
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

// Lazies and works of a thread belong to the runtime that the thread made last. A runtime whose
// construction failed does not count.
TEST_P(allocation_failure, a_runtime_that_could_not_be_made_has_no_lazies) {
  const int failures = fail_everywhere([&] {
    try {
      runtime rt(options());
    } catch (...) {
      have_memory_again();
      lazy one([] { return 1; });
      lazy two([] { return 2; });
      EXPECT_EQ(one.get() + two.get(), 3);
      throw;
    }
  });
  EXPECT_GE(failures, 3);
}

work<int> counts_owners(std::shared_ptr<int> token) {
  co_return static_cast<int>(token.use_count());
}

TEST_P(allocation_failure, a_fork_in_serial_mode_throws_and_drops_its_parts_once) {
  auto token = std::make_shared<int>(1);
  auto chosen = options();
  chosen.serial_lazies = true;
  const auto forks = [](std::shared_ptr<int> held, long at, bool& threw) -> task<> {
    auto both = fork(counts_owners(held), counts_owners(held));
    run_out_of_memory_after(at);
    try {
      co_await std::move(both);
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    have_memory_again();
  };
  bool threw = true;
  for (long at = 0; threw; ++at) {
    threw = false;
    {
      runtime rt(chosen);
      auto forker = forks(token, at, threw);
      rt.spawn(std::move(forker));
      rt.run();
    }
    ASSERT_EQ(token.use_count(), 1) << "at allocation " << at;
    EXPECT_TRUE(threw || at != 0);
  }
}

TEST_P(allocation_failure, a_lazy_scope_that_cannot_submit_runs_what_it_has_itself) {
  lazy first([] { return 1; });
  EXPECT_EQ(first.get(), 1);  // allocates what each thread needs once
  for (long at = 0; at < 10; ++at) {
    runtime rt(options());
    std::atomic<int> ran{0};
    {
      const lazy_scope all(unwanted::run);
      lazy one([&ran] { ++ran; });
      lazy two([&ran] { ++ran; });
      run_out_of_memory_after(at);
    }
    have_memory_again();
    rt.run();
    EXPECT_EQ(ran.load(), 2);
  }
}

TEST_P(allocation_failure, who_wants_the_first_lazy_or_work_of_a_thread_is_told) {
  // More threads than existed before, since threads reuse what earlier ones have allocated.
  constexpr int threads = 64;
  auto token = std::make_shared<int>(1);
  std::atomic<int> ran{0}, failures{0};
  std::latch all_are_there(threads);
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&, i] {
        lazy one([&ran] { return ++ran; });
        if (i % 2 == 0) {
          failures += fail_everywhere([&] { static_cast<void>(one.get()); });
        } else {
          work<int> other = counts_owners(token);
          run_out_of_memory_after(0);
          try {
            static_cast<void>(std::move(other).get());
          } catch (const std::bad_alloc&) {
            ++failures;
          }
          have_memory_again();
          static_cast<void>(one.get());
        }
        all_are_there.arrive_and_wait();
      });
    }
  }
  EXPECT_EQ(ran.load(), threads);
  EXPECT_GE(failures.load(), 1);
  EXPECT_EQ(token.use_count(), 1);
}

// A thread that forks calls other workers, if necessary later by a timer, which needs memory.
TEST_P(allocation_failure, parallel_loops_and_sorts_throw_or_end) {
  bool went_out = true;
  for (long at = 0; went_out && at < 100; ++at) {
    runtime rt(options());
    std::vector<int> numbers(20'000);
    std::iota(numbers.rbegin(), numbers.rend(), 0);
    run_out_of_memory_after(at);
    bool threw = false;
    try {
      parallel_sort(numbers, {}, {.grain = 100}).get();
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    went_out = failed;
    have_memory_again();
    EXPECT_TRUE(threw || std::ranges::is_sorted(numbers));
  }
  EXPECT_FALSE(went_out);
}

// More actors than any queue has space for at first.
constexpr int crowd = 5000;

struct one_of_many {
  std::atomic<int>* handled;
  explicit one_of_many(std::atomic<int>* handled) : handled(handled) {}
  void work() { ++*handled; }
};

std::vector<ref<one_of_many>> make_crowd(runtime& rt, std::atomic<int>* handled) {
  std::vector<ref<one_of_many>> all;
  for (int i = 0; i < crowd; ++i) all.push_back(rt.spawn<one_of_many>(handled));
  return all;
}

TEST_P(allocation_failure, a_queue_that_cannot_grow_takes_all_the_same) {
  std::atomic<int> handled{0};
  runtime rt(options());
  auto all = make_crowd(rt, &handled);
  // Holds all workers, so that none runs anything before all messages are sent. Under the simulated
  // policy that is so anyway.
  std::latch entered(threaded() ? rt.workers() : 0), sent(1);
  for (unsigned i = 0; threaded() && i < rt.workers(); ++i) {
    rt.post([&] {
      entered.count_down();
      sent.wait();
    });
  }
  entered.wait();
  for (auto& one : all) fail_everywhere([&] { one.tell<&one_of_many::work>(); });
  for (int i = 0; i < crowd; ++i) fail_everywhere([&] { rt.post([&handled] { ++handled; }); });
  sent.count_down();
  rt.run();
  EXPECT_EQ(handled.load(), 2 * crowd);
}

TEST_P(allocation_failure, a_handler_fills_a_queue_that_cannot_grow) {
  std::atomic<int> handled{0};
  runtime rt(options());
  auto all = make_crowd(rt, &handled);
  rt.post([&] {
    for (auto& one : all) fail_everywhere([&] { one.tell<&one_of_many::work>(); });
    for (int i = 0; i < crowd; ++i) fail_everywhere([&] { rt.post([&handled] { ++handled; }); });
  });
  rt.run();
  EXPECT_EQ(handled.load(), 2 * crowd);
  for (auto& one : all) one.tell<&one_of_many::work>();
  rt.run();
  EXPECT_EQ(handled.load(), 3 * crowd);
}

// The pool's own threads have no memory, while they take, run, deactivate and dispose of runnables.
TEST_P(allocation_failure, the_pools_threads_go_on_without_memory) {
  std::atomic<int> handled{0}, inside{0};
  runtime rt(options());
  auto all = make_crowd(rt, &handled);
  const int several = static_cast<int>(rt.workers());
  const auto post_to_each_worker = [&](auto procedure) {
    inside = 0;
    for (int i = 0; i < several; ++i) {
      rt.post([&inside, several, procedure] {
        ++inside;
        while (inside.load() < several) std::this_thread::yield();  // so no worker runs two of them
        procedure();
      });
    }
  };
  std::latch entered(several), sent(1);
  post_to_each_worker([&entered, &sent, waits = threaded()] {
    run_out_of_memory_after(0);
    entered.count_down();
    if (waits) sent.wait();
  });
  if (threaded()) entered.wait();
  for (auto& one : all) one.tell<&one_of_many::work>();
  all.clear();
  for (int i = 0; i < crowd; ++i) rt.post([&handled] { ++handled; });
  sent.count_down();
  rt.run();
  have_memory_again();
  EXPECT_EQ(handled.load(), 2 * crowd);
  post_to_each_worker([] { have_memory_again(); });
  rt.run();
}

struct numbered {
  int number;
};

struct throwing_with_a_name_that_no_string_has_room_for {
  void work(int number) { throw numbered{number}; }
};

TEST_P(allocation_failure, failures_are_kept_in_their_order_and_those_without_room_told_of) {
  constexpr int room = 16, many = 100;
  std::atomic<int> observed{0};
  runtime_options chosen = options();
  chosen.workers = 1;
  chosen.on_error = [&](const failure& one) { observed += one.what != nullptr ? 1 : 0; };
  runtime rt(chosen);
  using thrower = throwing_with_a_name_that_no_string_has_room_for;
  auto one = rt.spawn<thrower>();
  for (int round = 1; round <= 2; ++round) {
    one.tell([](thrower&) { run_out_of_memory_after(0); });
    for (int i = 0; i < many; ++i) one.tell<&thrower::work>(i);
    one.tell([](thrower&) { have_memory_again(); });
    one.tell<&thrower::work>(many);
    std::vector<int> thrown;
    for (bool more = true; more && thrown.size() < many;) {
      try {
        rt.run();
        more = false;
      } catch (const numbered& e) {
        thrown.push_back(e.number);
        EXPECT_NE(rt.thrown().actor.find("no_string_has_room"), std::string::npos);
      } catch (const troupe::error& e) {
        thrown.push_back(-1);
        EXPECT_NE(std::string(e.what()).find("memory was out"), std::string::npos);
      }
    }
    std::vector<int> expected;
    for (int i = 0; i < room; ++i) expected.push_back(i);
    expected.push_back(-1);
    expected.push_back(many);
    EXPECT_EQ(thrown, expected);
    EXPECT_EQ(observed.load(), round * (many + 1));
  }
}

TEST_P(allocation_failure, a_dead_letter_is_counted_and_observed_all_the_same) {
  std::atomic<int> observed{0};
  runtime_options chosen = options();
  chosen.workers = 1;
  chosen.on_dead_letter = [&](const dead_letter&) { ++observed; };
  runtime rt(chosen);
  using thrower = throwing_with_a_name_that_no_string_has_room_for;
  auto one = rt.spawn<thrower>(spawn_options{.on_error = error_policy::stop});
  one.tell([](thrower&) {
    run_out_of_memory_after(0);
    throw numbered{1};
  });
  one.tell<&thrower::work>(2);
  EXPECT_THROW(rt.run(), numbered);
  have_memory_again();
  EXPECT_EQ(observed.load(), 1);
  EXPECT_EQ(rt.metrics().dead_letters, 1u);
  rt.post([] { have_memory_again(); });
  rt.run();
}

// Memory for messages comes from the kernel: with this limit the process gets no more of it for a
// while.
class memory_limit {
 public:
  explicit memory_limit(std::size_t more_bytes) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    ::getrlimit(RLIMIT_AS, &before_);
    rlimit now = before_;
    now.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + more_bytes;
    ::setrlimit(RLIMIT_AS, &now);
  }
  ~memory_limit() { ::setrlimit(RLIMIT_AS, &before_); }
  memory_limit(const memory_limit&) = delete;
  memory_limit& operator=(const memory_limit&) = delete;

 private:
  rlimit before_{};
};

// A task that sleeps has no actor (conformance/waits/asleep.cpp). Without memory for a new one it
// stays asleep.
TEST_P(allocation_failure, who_sleeps_wakes_when_there_is_memory_again) {
  if (!threaded())
    GTEST_SKIP() << "needs threads: one thread: it handles what wakes before the next one does";
  constexpr int count = 60'000;
  runtime rt(options());
  std::atomic<int> woken{0};
  struct sleeper {
    static task<> sleep(std::atomic<int>& woken) {
      co_await sleep_for(std::chrono::milliseconds(400));
      ++woken;
    }
  };
  for (int n = 0; n < count; ++n) rt.spawn(sleeper::sleep(woken));
  // The workers are held when the tasks wake, so that all of them want an actor at the same time.
  std::latch held(static_cast<std::ptrdiff_t>(workers())), go_on(1);
  while (rt.metrics().suspended < static_cast<std::uint64_t>(count)) std::this_thread::yield();
  const std::string any_actor = "a spawned task #";
  while (rt.dump().find(any_actor) != std::string::npos) std::this_thread::yield();
  for (unsigned i = 0; i < workers(); ++i) rt.post([&] { held.count_down(), go_on.wait(); });
  held.wait();
  const bool in_time = woken.load() == 0;
  {
    const memory_limit limit(1 << 20);
    // sleeps: until all tasks should wake
    if (in_time) std::this_thread::sleep_for(std::chrono::milliseconds(450));
    go_on.count_down();
    while (woken.load() < count) std::this_thread::yield();
  }
  rt.run();
  EXPECT_EQ(rt.metrics().actors, 0u);
  if (!in_time)
    GTEST_SKIP() << "needs quiet processors: the tasks woke before the workers were held";
}

TEST_P(allocation_failure, what_was_sent_before_memory_was_out_is_handled) {
  std::atomic<int> handled{0};
  std::atomic<int> alive{0};
  int sent = 0;
  {
    runtime rt(options());
    auto one = rt.spawn<one_of_many>(&handled);
    std::vector<ref<counted>> dropped;
    for (const thread_kind& where : thread_kinds("dropped"))
      dropped.push_back(spawn_on<counted>(rt, where, unchecked{&alive}));
    rt.run();
    std::latch entered(threaded() ? 1 : 0), leave(1);
    if (threaded()) {
      one.tell([&](one_of_many&) {
        entered.count_down();
        leave.wait();
      });
    }
    entered.wait();
    {
      const memory_limit limit(1 << 20);
      constexpr int at_most = 100'000'000;
      try {
        for (; sent < at_most; ++sent) one.tell<&one_of_many::work>();
      } catch (const std::bad_alloc&) {
        // Dropping the last refs must not throw.
        dropped.clear();
      }
      EXPECT_LT(sent, at_most);
      EXPECT_TRUE(dropped.empty());
    }
    leave.count_down();
    rt.run();
    EXPECT_EQ(handled.load(), sent);
  }
  EXPECT_EQ(alive.load(), 0);
}

TEST_P(allocation_failure, a_parent_that_has_no_memory_for_its_child_says_so) {
  runtime rt(options());
  std::atomic<int> alive{0};
  auto parent = rt.spawn<counted>(on_main(), unchecked{&alive});
  rt.run();
  auto child = rt.spawn<counted>({.parent = parent}, &alive);
  bool told = false;
  run_out_of_memory_after(0);
  try {
    rt.run();
  } catch (const std::bad_alloc&) {
    told = true;
  }
  have_memory_again();
  EXPECT_TRUE(told);
  EXPECT_EQ(rt.thrown().method, "spawn");
  parent.stop();
  child.stop();
  rt.run();
  EXPECT_EQ(alive.load(), 0);
}

// As many as fit into a slab, so that the actors leave no free slot in the slabs that they take.
struct a_quarter_of_a_slab {
  std::array<char, 15'000> bytes;
};

// All memory that a task's first turn needs is allocated when it is spawned, except for its actor's
// slot. There may be no memory for slots when the turn comes.
TEST_P(allocation_failure, a_task_that_has_no_memory_for_its_first_turn_says_so) {
  runtime_options chosen = options();
  chosen.workers = 1;
  for (const bool waits : {false, true}) {
    std::optional<future<int>> result;
    std::optional<memory_limit> limit;
    std::vector<ref<a_quarter_of_a_slab>> others;
    others.reserve(10'000);
    auto task_of = [](bool later) -> task<int> {
      if (later) co_await yield();
      co_return 5;
    };
    runtime rt(chosen);
    rt.post([&] {
      result.emplace(rt.spawn(task_of(waits)));
      rt.post([&] { limit.reset(); });
      limit.emplace(0);
      EXPECT_THROW(while (others.size() < others.capacity())
                       others.push_back(rt.spawn<a_quarter_of_a_slab>()),
                   std::bad_alloc);
    });
    rt.run();
    ASSERT_TRUE(result.has_value());
    if (!simulated()) {
      EXPECT_THROW(result->get(), std::bad_alloc);
    } else {
      EXPECT_EQ(result->get(), 5) << "the simulated policy makes the actor when it is spawned";
    }
    EXPECT_EQ(rt.metrics().actors, others.size()) << "it does not count as one that lives";
    rt.post([&] {
      rt.spawn(task_of(waits));
      rt.post([&] { limit.reset(); });
      limit.emplace(0);
    });
    if (!simulated()) {
      EXPECT_THROW(rt.run(), std::bad_alloc) << "nobody would hear of it else";
    } else {
      rt.run();
    }
    EXPECT_EQ(rt.metrics().actors, others.size());
  }
}

// Besides, none of the runtime's threads can make an activation for an inactive actor.
class no_activations {
 public:
  no_activations() {
    taken_.reserve(at_most);
    limit_.emplace(0);
    try {
      while (taken_.size() < at_most) taken_.push_back(memory::allocate_stable());
    } catch (const std::bad_alloc&) {
    }
    EXPECT_LT(taken_.size(), at_most);
  }
  ~no_activations() {
    limit_.reset();
    for (void* one : taken_) memory::deallocate_stable(one);
  }
  no_activations(const no_activations&) = delete;
  no_activations& operator=(const no_activations&) = delete;

 private:
  static constexpr std::size_t at_most = 1'000'000;
  std::vector<void*> taken_;
  std::optional<memory_limit> limit_;
};

struct doorman {
  static constexpr bool reentrant = true;
  int let_in = 0;
  task<int> wait_for(future<int> key) {
    const int got = co_await std::move(key);
    co_return got + let_in;
  }
  int pass() { return ++let_in; }
};

TEST_P(allocation_failure, a_reentrant_actor_with_calls_that_wait_goes_on) {
  runtime rt(options());
  for (const thread_kind& where : thread_kinds("door")) {
    auto one = spawn_on<doorman>(rt, where);
    auto sleeping = spawn_on<doorman>(rt, where);
    // Makes the pool of blocks of this size have free ones from now on.
    auto before = spawn_on<doorman>(rt, where).ask<&doorman::pass>();
    rt.run();
    EXPECT_EQ(before.get(), 1);
    promise<int> first, second;
    auto first_answer = one.ask<&doorman::wait_for>(first.get_future());
    auto second_answer = one.ask<&doorman::wait_for>(second.get_future());
    EXPECT_THROW(rt.run(), stalled) << "both wait";
    {
      const no_activations exhausted;
      EXPECT_THROW(static_cast<void>(sleeping.ask<&doorman::pass>()), std::bad_alloc)
          << "the asker is told";
      first.set_value(10);
      auto passed = one.ask<&doorman::pass>();
      EXPECT_THROW(rt.run(), stalled) << "one waits still";
      EXPECT_EQ(passed.get(), 1);
      second.set_value(20);
      rt.run();
    }
    EXPECT_THAT(first_answer.get(), testing::AnyOf(10, 11))
        << "the other one may have been let in before";
    EXPECT_EQ(second_answer.get(), 21);
    auto passed = sleeping.ask<&doorman::pass>();
    rt.run();
    EXPECT_EQ(passed.get(), 1) << "once: the ask that failed has sent nothing";
  }
}

TROUPE_TEST_EACH(allocation_failure, each_policy);

}  // namespace
}  // namespace troupe::test

#endif
