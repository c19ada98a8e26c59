// Allocation from a context, its blocks, snapshots and rollbacks. Persisted objects have tests of
// their own.
#include "troupe/context/context.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "context/blocks/block.hpp"
#include "context/blocks/poison.hpp"
#include "context/current_context.hpp"
#include "troupe/base/error.hpp"
#include "troupe/context/snapshot.hpp"

namespace troupe {
namespace {

bool is_aligned(const void* address, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

// Records in a log when it is destroyed.
struct witness {
  witness(std::vector<int>& log, int name) : to(log), id(name) {}
  witness(const witness&) = delete;
  ~witness() { to.push_back(id); }
  std::vector<int>& to;
  int id;
};

TEST(context, memory_is_aligned_and_does_not_overlap_and_is_found_by_its_owner) {
  owned_context first = make_context(), other = make_context();
  std::minstd_rand random(1);
  std::vector<std::pair<unsigned char*, std::size_t>> all;
  for (int i = 0; i < 3000; ++i) {
    const std::size_t bytes = i % 500 == 499 ? random() % 3'000'000 : random() % 700,
                      alignment = std::size_t{1} << random() % 9;
    auto* memory = static_cast<unsigned char*>(first->allocate(bytes, alignment));
    ASSERT_TRUE(is_aligned(memory, alignment));
    if (bytes == 0) continue;
    ASSERT_EQ(owner_of(memory), first.get());
    ASSERT_EQ(owner_of(memory + bytes - 1), first.get());
    ASSERT_EQ(owner_of(other->allocate(8)), other.get());
    std::memset(memory, i % 251, bytes);
    all.emplace_back(memory, bytes * 1000 + static_cast<std::size_t>(i % 251));
  }
  for (const auto& [memory, kept] : all) {
    for (std::size_t i = 0; i < kept / 1000; ++i) ASSERT_EQ(memory[i], kept % 1000);
  }
}

TEST(context, owner_of_what_is_elsewhere_is_null) {
  static int fixed = 0;
  int local = 0;
  auto heap = std::make_unique<int>();
  owned_context work = make_context();
  for (const void* address :
       {static_cast<const void*>(&fixed), static_cast<const void*>(&local),
        static_cast<const void*>(heap.get()), static_cast<const void*>(nullptr),
        reinterpret_cast<const void*>(~std::uintptr_t{0}),
        reinterpret_cast<const void*>(std::uintptr_t{1} << 62)}) {
    EXPECT_EQ(owner_of(address), nullptr);
  }
  const void* mine = work->allocate(8);
  work.release();
  EXPECT_EQ(owner_of(mine), nullptr) << "it was given back";
}

TEST(context, every_byte_of_a_block_of_many_chunks_has_its_owner) {
  owned_context work = make_context();
  const auto* large = static_cast<const char*>(work->allocate(std::size_t{9} << 20));
  for (std::size_t at = 0; at < std::size_t{9} << 20; at += 4096)
    ASSERT_EQ(owner_of(large + at), work.get());
  work.release();
  for (std::size_t at = 0; at < std::size_t{9} << 20; at += 4096)
    ASSERT_EQ(owner_of(large + at), nullptr);
}

TEST(context, containers_and_their_parts_live_in_it) {
  owned_context work = make_context();
  auto words = work->make<std::pmr::vector<std::pmr::string>>();
  for (int i = 0; i < 1000; ++i)
    words->emplace_back("a word that is longer than a string holds by itself");
  for (const auto& word : *words) ASSERT_EQ(owner_of(word.data()), work.get());
  auto tree = work->make<std::pmr::map<int, std::pmr::string>>();
  tree->emplace(1, "another word that is longer than a string holds by itself");
  EXPECT_EQ(owner_of(tree->at(1).data()), work.get());
}

TEST(context, what_has_a_destructor_is_destroyed_newest_first) {
  std::vector<int> log;
  owned_context work = make_context();
  for (int i = 1; i <= 3; ++i) work->make<witness>(log, i);
  {
    snapshot here(*work);
    for (int i = 4; i <= 6; ++i) work->make<witness>(log, i);
    work->rollback(here);
    EXPECT_EQ(log, (std::vector{6, 5, 4}));
    work->make<witness>(log, 7);
    work->rollback(here);
  }
  EXPECT_EQ(log, (std::vector{6, 5, 4, 7}));
  work.release();
  EXPECT_EQ(log, (std::vector{6, 5, 4, 7, 3, 2, 1}));
}

TEST(context, what_was_not_constructed_is_not_destroyed) {
  struct refuses {
    refuses() { throw std::runtime_error("no"); }
    ~refuses() { std::abort(); }
  };
  owned_context work = make_context();
  EXPECT_THROW(work->make<refuses>(), std::runtime_error);
}

TEST(context, a_destructor_may_allocate_and_make_things_that_are_destroyed_too) {
  struct talker {
    talker(context& given, std::vector<int>& log, int times) : home(given), to(log), left(times) {}
    ~talker() {
      std::memset(home.allocate(5000), 0xEE, 5000);
      to.push_back(left);
      if (left > 0) home.make<talker>(home, to, left - 1);
    }
    context& home;
    std::vector<int>& to;
    int left;
  };
  std::vector<int> log;
  owned_context work = make_context();
  snapshot here(*work);
  work->make<talker>(*work, log, 3);
  work->rollback(here);
  EXPECT_EQ(log, (std::vector{3, 2, 1, 0}));
}

TEST(context, a_destructor_that_a_rollback_calls_may_not_roll_back) {
  struct meddler {
    meddler(context& given, bool& was_refused) : home(given), refused(was_refused) {}
    ~meddler() {
      try {
        snapshot inner(home);
        home.rollback(inner);
      } catch (const usage_error&) {
        refused = true;
      }
    }
    context& home;
    bool& refused;
  };
  bool refused = false;
  owned_context work = make_context();
  scoped_rollback each(*work);
  {
    scoped_rollback inner(*work);
    work->make<meddler>(*work, refused);
  }
  EXPECT_TRUE(refused);
}

TEST(context, a_rollback_gives_the_same_memory_again) {
  owned_context work = make_context();
  static_cast<void>(work->allocate(100));
  snapshot here(*work);
  const void* first = work->allocate(64);
  const std::size_t before = work->bytes();
  for (int i = 0; i < 100'000; ++i) {
    for (int k = 0; k < 5; ++k) static_cast<void>(work->allocate(3000));
    work->rollback(here);
    ASSERT_EQ(work->allocate(64), first);
    work->rollback(here);
  }
  EXPECT_LE(work->bytes(), before + (4 << 10) + (16 << 10) + (64 << 10));
}

TEST(context, snapshots_nest) {
  owned_context work = make_context();
  snapshot outer(*work);
  auto* a = ::new (work->allocate(4)) int(1);
  snapshot inner(*work);
  static_cast<void>(work->allocate(300'000));
  work->rollback(inner);
  EXPECT_EQ(*a, 1);
  static_cast<void>(work->allocate(300'000));
  work->rollback(outer);
  EXPECT_THROW(work->rollback(inner), usage_error) << "it was rolled over";
  owned_context another = make_context();
  EXPECT_THROW(another->rollback(outer), usage_error);
}

TEST(context, rollback_keeps_a_bounded_reserve) {
  owned_context work = make_context({.retain_bytes = 300'000});
  snapshot here(*work);
  for (int i = 0; i < 10'000; ++i) static_cast<void>(work->allocate(1000));
  EXPECT_GE(work->bytes(), 10'000'000u);
  work->rollback(here);
  EXPECT_LE(work->bytes(), 4096u + 300'000u);
  EXPECT_GT(work->bytes(), 4096u);
  work->trim();
  EXPECT_EQ(work->bytes(), 4096u);
}

TEST(context, a_limit_is_kept_exactly_and_leaves_the_context_usable) {
  constexpr std::size_t limit = 4096 + 16'384;
  owned_context work = make_context({.bytes_max = limit});
  std::size_t given = 0;
  for (bool full = false; !full;) {
    try {
      static_cast<void>(work->allocate(64, 1));
      given += 64;
    } catch (const context_full& refused) {
      full = true;
      EXPECT_NE(std::string(refused.what()).find("bytes_max"), std::string::npos);
    }
  }
  EXPECT_GT(given, limit / (contexts::poisons ? 2 : 1) - 1024);
  EXPECT_EQ(work->bytes(), limit);
  snapshot here(*work);
  EXPECT_THROW(static_cast<void>(work->allocate(1 << 20)), std::bad_alloc);
  work->rollback(here);
  EXPECT_THROW(static_cast<void>(make_context({.bytes_max = 4095})), option_error);
  EXPECT_EQ(make_context({.bytes_max = 4096})->bytes(), 4096u);
}

TEST(context, a_smaller_block_is_taken_where_a_larger_one_would_exceed_the_limit) {
  owned_context work = make_context({.bytes_max = 4096 + 16'384 + 4096});
  for (int i = 0; i < 23; ++i) static_cast<void>(work->allocate(900, 1));
  EXPECT_EQ(work->bytes(), 4096u + 16'384u + 4096u);
}

// A block may be refused at each point of a piece of work that needs one. Wherever that happens,
// nothing leaks.
TEST(context, refused_at_any_block_nothing_leaks) {
  const context_counters before = count_contexts();
  for (std::size_t limit = 4096; limit < 1 << 20; limit = limit * 3 / 2) {
    int alive = 0;
    struct counted {
      explicit counted(int& alive_count) : count(alive_count) { ++count; }
      ~counted() { --count; }
      int& count;
      char filling[200];
    };
    try {
      owned_context work = make_context({.bytes_max = limit});
      scoped_rollback each(*work);
      for (int i = 0; i < 10'000; ++i) work->make<counted>(alive);
      FAIL();
    } catch (const context_full&) {
    }
    ASSERT_EQ(alive, 0);
  }
  EXPECT_EQ(count_contexts().active, before.active);
  EXPECT_EQ(count_contexts().bytes, before.bytes);
}

TEST(context, without_memory_from_the_kernel_it_says_so_and_goes_on) {
  if (contexts::poisons)
    GTEST_SKIP() << "needs an unsanitized build: AddressSanitizer wants all of the address space";
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "needs an unsanitized build: ThreadSanitizer wants all of the address space";
#endif
#endif
  const pid_t child = ::fork();
  if (child == 0) {
    owned_context work = make_context();
    ::rlimit none{0, 0};
    ::setrlimit(RLIMIT_AS, &none);
    int refused = 0;
    // Free memory that earlier tests have left is used up first.
    constexpr int enough = 90;
    for (int i = 0; i < 2'000 && refused < enough; ++i) {
      try {
        std::memset(work->allocate(1 << 20), 1, 1 << 20);
      } catch (const std::bad_alloc&) {
        ++refused;
      }
    }
    static_cast<void>(work->allocate(16));
    work.release();
    ::_exit(refused == enough ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(context, a_million_contexts_leave_nothing_behind) {
  { owned_context warm = make_context(); }
  const context_counters before = count_contexts();
  const int count = contexts::poisons ? 50'000 : 1'000'000;
  for (int i = 0; i < count; ++i) {
    owned_context work = make_context();
    static_cast<void>(work->allocate(i % 8 == 0 ? 10'000 : 100));
  }
  const context_counters after = count_contexts();
  EXPECT_EQ(after.active, before.active);
  EXPECT_EQ(after.bytes, before.bytes);
}

TEST(context, an_idle_one_costs_a_page) {
  const context_counters before = count_contexts();
  std::vector<owned_context> idle;
  for (int i = 0; i < 10'000; ++i) idle.push_back(make_context());
  const context_counters now = count_contexts();
  EXPECT_EQ(now.active - before.active, 10'000);
  EXPECT_EQ(now.bytes - before.bytes, 10'000 * 4096);
}

TEST(context, it_goes_from_thread_to_thread) {
  std::vector<int> log;
  owned_context work = make_context();
  for (int i = 0; i < 20; ++i) {
    std::thread([&] {
      context_scope inside(*work);
      ASSERT_EQ(&this_context(), work.get());
      work->make<witness>(log, i);
      static_cast<void>(this_context().allocate(50'000));
    }).join();
  }
  work.release();
  EXPECT_EQ(log.size(), 20u);
}

TEST(context, the_current_one_is_that_of_the_innermost_scope) {
  EXPECT_EQ(current_context(), nullptr);
  EXPECT_THROW(this_context(), usage_error);
  owned_context first = make_context(), other = make_context();
  {
    context_scope outer(*first);
    {
      context_scope inner(*other);
      EXPECT_EQ(&this_context(), other.get());
    }
    EXPECT_EQ(current_context(), first.get());
  }
  EXPECT_EQ(current_context(), nullptr);
}

TEST(context, two_threads_at_once_are_refused_in_checked_builds) {
  if (!contexts::checked) GTEST_SKIP() << "needs a checked build: not a checked build";
  owned_context work = make_context({.name = "upload"});
  context_scope inside(*work);
  std::thread([&] {
    try {
      static_cast<void>(work->allocate(8));
      FAIL();
    } catch (const unguarded_error& refused) {
      EXPECT_NE(std::string(refused.what()).find("(upload)"), std::string::npos);
    }
    EXPECT_THROW(context_scope second(*work), unguarded_error);
  }).join();
}

#if TROUPE_PLAIN_BLOCKS
TEST(context, what_was_rolled_back_is_poisoned) {
  owned_context work = make_context();
  snapshot here(*work);
  auto* small = static_cast<volatile char*>(work->allocate(8));
  auto* large = static_cast<volatile char*>(work->allocate(100'000));
  EXPECT_FALSE(__asan_address_is_poisoned(const_cast<char*>(small)));
  EXPECT_TRUE(__asan_address_is_poisoned(const_cast<char*>(small) + 8)) << "behind the object";
  work->rollback(here);
  EXPECT_TRUE(__asan_address_is_poisoned(const_cast<char*>(small)));
  EXPECT_TRUE(__asan_address_is_poisoned(const_cast<char*>(large) + 99'999));
}
#endif

TEST(context, it_says_which_it_is) {
  owned_context named = make_context({.name = "request"}), other = make_context();
  EXPECT_NE(named->number(), other->number());
  EXPECT_EQ(contexts::describe(*named),
            "context " + std::to_string(named->number()) + " (request)");
  EXPECT_EQ(contexts::describe(*other), "context " + std::to_string(other->number()));
}

}  // namespace
}  // namespace troupe
