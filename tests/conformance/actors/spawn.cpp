// Where actors live: sizes and alignments, threads of their own, and the limits of their turns.
#include <pthread.h>

#include <algorithm>
#include <set>

#include "support/conformance.hpp"
#include "support/resident.hpp"

namespace troupe::test {
namespace {

class spawn : public conformance {};
class layout : public conformance {};

template <std::size_t Bytes>
struct sized {
  std::array<unsigned char, Bytes> block{};
  std::atomic<int>* right;
  explicit sized(std::atomic<int>* right) : right(right) {
    block.fill(static_cast<unsigned char>(Bytes));
  }
  ~sized() { check(); }
  void check() {
    for (const unsigned char one : block) {
      if (one != static_cast<unsigned char>(Bytes)) return;
    }
    ++*right;
  }
};

template <std::size_t... Bytes>
void spawn_sizes(runtime& rt, std::atomic<int>& right, int count) {
  const auto one_size = [&]<std::size_t Size>(std::integral_constant<std::size_t, Size>) {
    std::vector<ref<sized<Size>>> all;
    for (int i = 0; i < count; ++i) all.push_back(rt.spawn<sized<Size>>(&right));
    for (auto& one : all) one.template tell<&sized<Size>::check>();
    rt.run();
  };
  (one_size(std::integral_constant<std::size_t, Bytes>{}), ...);
  rt.run();
}

TEST_P(spawn, actors_of_all_sizes) {
  std::atomic<int> right{0};
  {
    runtime rt(options());
    spawn_sizes<1, 8, 232, 240, 256, 1000, 4064, 4072, 4080, 5000, 16'352, 16'384, 20'000, 65'536,
                300'000>(rt, right, 20);
  }
  EXPECT_EQ(right.load(), 15 * 20 * 2);
}

template <std::size_t Alignment, std::size_t Bytes>
struct alignas(Alignment) aligned {
  std::array<unsigned char, Bytes> block;
  std::atomic<int>* wrong;
  explicit aligned(std::atomic<int>* wrong) : wrong(wrong) {
    block.fill(static_cast<unsigned char>(Alignment / 8));
  }
  ~aligned() { check(); }
  void check() {
    *wrong += reinterpret_cast<std::uintptr_t>(this) % Alignment == 0 ? 0 : 1;
    *wrong +=
        std::count(block.begin(), block.end(), static_cast<unsigned char>(Alignment / 8)) == Bytes
            ? 0
            : 1;
  }
};

template <std::size_t Alignment, std::size_t... Bytes>
void spawn_aligned(runtime& rt, std::atomic<int>& wrong) {
  const auto one_size = [&]<std::size_t Size>(std::integral_constant<std::size_t, Size>) {
    using actor = aligned<Alignment, Size>;
    std::vector<ref<actor>> all;
    for (int i = 0; i < 5; ++i) {
      all.push_back(rt.spawn<actor>(&wrong));
      all.push_back(rt.spawn<actor>(spawn_options{.turn = {3, {}}}, &wrong));
      all.push_back(rt.spawn<actor>(pinned("aligned"), unchecked{&wrong}));
    }
    for (auto& one : all) one.template tell<&actor::check>();
    rt.run();
  };
  (one_size(std::integral_constant<std::size_t, Bytes>{}), ...);
}

TEST_P(layout, over_aligned_objects_of_all_sizes_are_aligned) {
  std::atomic<int> wrong{0};
  {
    runtime rt(options());
    const auto one_alignment =
        [&]<std::size_t Alignment>(std::integral_constant<std::size_t, Alignment>) {
          spawn_aligned<Alignment, 1, 200, 1000, 4096, 20'000, 300'000>(rt, wrong);
        };
    one_alignment(std::integral_constant<std::size_t, 16>{});
    one_alignment(std::integral_constant<std::size_t, 64>{});
    one_alignment(std::integral_constant<std::size_t, 256>{});
    one_alignment(std::integral_constant<std::size_t, 2048>{});
  }
  EXPECT_EQ(wrong.load(), 0);
}

// Returns the bytes for each of many actors of this class, including its activation (64 bytes)
// while its deactivation is deferred.
template <class Actor>
std::size_t resident_bytes_each(const runtime_options& options, int count) {
  std::atomic<int> wrong{0};
  runtime rt(options);
  std::vector<ref<Actor>> all(static_cast<std::size_t>(count));
  rt.run();
  const std::size_t before = resident_bytes();
  for (auto& one : all) one = rt.spawn<Actor>(&wrong);
  const std::size_t after = resident_bytes();
  return (after - std::min(before, after)) / all.size();
}

TEST_P(layout, an_actor_takes_about_the_memory_of_its_object) {
  if (slow) GTEST_SKIP() << "needs an unsanitized build: sanitizers have memory of their own";
  constexpr std::size_t chunk = 2 << 20;  // the kernel gives memory in pieces of this size
  const auto about = [](std::size_t object, std::size_t count) {
    return object + 64 + chunk / count;
  };
  using small = aligned<16, 16>;
  EXPECT_LE(resident_bytes_each<small>(options(), 50'000), about(sizeof(small), 50'000));
  using line = aligned<64, 16>;
  EXPECT_LE(resident_bytes_each<line>(options(), 50'000), about(sizeof(line), 50'000));
  using block = aligned<8, 5'000>;
  EXPECT_LE(resident_bytes_each<block>(options(), 2'000), about(sizeof(block) * 4 / 3, 2'000));
  using large = aligned<32, 40'000>;
  EXPECT_LE(resident_bytes_each<large>(options(), 500), about(sizeof(large) * 4 / 3, 500));
}

// Notes the thread of its constructor, handlers and destructor.
struct resident {
  std::set<std::thread::id>* threads;
  std::atomic<int>* handled;
  ref<resident> partner;
  resident(std::set<std::thread::id>* threads, std::atomic<int>* handled)
      : threads(threads), handled(handled) {
    note();
  }
  ~resident() { note(); }
  void note() { threads->insert(std::this_thread::get_id()); }
  void meet(ref<resident> one) {
    note();
    partner = std::move(one);
  }
  void hit(int left) {
    note();
    ++*handled;
    if (left > 1) partner.tell<&resident::hit>(left - 1);
  }
};

TEST_P(spawn, a_pinned_actors_constructor_handlers_and_destructor_run_on_one_thread) {
  // Each is written on one thread only, so they need no mutex.
  std::set<std::thread::id> one, two, main_thread;
  std::atomic<int> handled{0};
  {
    runtime rt(options());
    auto a = rt.spawn<resident>(pinned("one"), unchecked{&one}, unchecked{&handled});
    auto b = rt.spawn<resident>(pinned("two"), unchecked{&two}, unchecked{&handled});
    auto c = rt.spawn<resident>(on_main(), unchecked{&main_thread}, unchecked{&handled});
    a.tell<&resident::meet>(b);
    b.tell<&resident::meet>(c);
    c.tell<&resident::meet>(a);
    for (int i = 0; i < 3; ++i) {
      a.tell<&resident::hit>(100);
      rt.run();
    }
    b.stop();
    rt.run();
  }
  EXPECT_EQ(handled.load(), 300);
  EXPECT_EQ(one.size(), 1u);
  EXPECT_EQ(two.size(), 1u);
  EXPECT_EQ(main_thread, std::set{std::this_thread::get_id()});
  if (threaded()) {
    EXPECT_NE(one, two);
    EXPECT_NE(one, main_thread);
  }
}

TEST_P(spawn, actors_that_name_one_thread_share_it) {
  std::set<std::thread::id> threads;
  std::atomic<int> handled{0};
  {
    runtime rt(options());
    std::vector<ref<resident>> all;
    for (int i = 0; i < 10; ++i)
      all.push_back(rt.spawn<resident>(pinned("shared"), unchecked{&threads}, unchecked{&handled}));
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i].tell<&resident::meet>(all[(i + 1) % all.size()]);
    for (auto& one : all) one.tell<&resident::hit>(20);
    rt.run();
    for (auto& one : all) one.stop();
  }
  EXPECT_EQ(handled.load(), 200);
  EXPECT_EQ(threads.size(), 1u);
}

TEST_P(spawn, a_pinned_thread_has_its_name) {
  if (!threaded()) GTEST_SKIP() << "needs threads: there is one thread only";
  std::string name;
  runtime rt(options());
  struct asks {
    std::string* name;
    explicit asks(std::string* name) : name(name) {}
    void ask() {
      std::array<char, 64> text{};
      ::pthread_getname_np(::pthread_self(), text.data(), text.size());
      *name = text.data();
    }
  };
  auto one = rt.spawn<asks>(pinned("a_rather_long_name"), unchecked{&name});
  rt.run();
  one.tell<&asks::ask>();
  rt.run();
  EXPECT_EQ(name, "a_rather_long_n");
}

TEST_P(spawn, arguments_of_pinned_constructors_are_copied_or_moved_there) {
  struct built {
    std::string text, literal;
    std::unique_ptr<int> number;
    built(const std::string& text, std::string_view literal, std::unique_ptr<int> number)
        // The arguments live until the constructor returns.
        : text(text), literal(literal), number(std::move(number)) {}
  };
  runtime rt(options());
  for (const thread_kind& where : thread_kinds("built")) {
    std::string text = "text";
    auto one = spawn_on<built>(rt, where, text, "literal", std::make_unique<int>(3));
    text = "changed";
    std::string seen;
    one.tell(
        [&seen](built& self) { seen = self.text + self.literal + std::to_string(*self.number); });
    rt.run();
    EXPECT_EQ(seen, "textliteral3");
  }
}

TEST_P(spawn, what_outlives_an_actor_is_given_to_its_constructor_unchecked) {
  struct clerk {
    runtime& rt;
    int* served;
    clerk(runtime& rt, int* served) : rt(rt), served(served) {}
    void serve() {
      ++*served;
      rt.stop(stop_mode::discard);
    }
  };
  int served = 0;
  runtime rt(options());
  for (const thread_kind& where : thread_kinds("clerk")) {
    auto one = spawn_on<clerk>(rt, where, unchecked<runtime&>{rt}, unchecked{&served});
    one.template tell<&clerk::serve>();
    rt.run();
  }
  EXPECT_EQ(served, 3);
}

// The limits of turns.

struct taker {
  std::vector<int>* order;
  int id;
  taker(std::vector<int>* order, int id) : order(order), id(id) {}
  void take() { order->push_back(id); }
};

// The longest run of one actor's handlers in a row.
int longest_run(const std::vector<int>& order) {
  int longest = 0, run = 0, before = -1;
  for (const int id : order) {
    run = id == before ? run + 1 : 1;
    before = id;
    longest = std::max(longest, run);
  }
  return longest;
}

// Two actors on one thread, each with many messages. A handler on that thread sends them, so that
// both actors are in the queue.
std::vector<int> order_of_two(runtime& rt, const thread_kind& where, int messages) {
  std::vector<int> order;
  const auto make = [&](int id) { return spawn_on<taker>(rt, where, unchecked{&order}, id); };
  make(0).tell([one = make(1), two = make(2), messages](taker&) {
    for (int i = 0; i < messages; ++i) {
      one.tell<&taker::take>();
      two.tell<&taker::take>();
    }
  });
  rt.run();
  return order;
}

TEST_P(spawn, a_turn_ends_after_its_number_of_messages) {
  for (const unsigned limit : {1u, 2u, 10u}) {
    runtime_options chosen = options();
    chosen.workers = 1;
    chosen.turn.messages = limit;
    chosen.turn.time = std::chrono::hours(1);
    runtime rt(chosen);
    for (const thread_kind& where : thread_kinds("taker")) {
      const auto order = order_of_two(rt, where, 100);
      ASSERT_EQ(order.size(), 200u);
      if (threaded()) {
        EXPECT_LE(longest_run(order), static_cast<int>(limit));
      }
    }
    for (const thread_kind& where : thread_kinds("taker", {.turn = {3, std::chrono::hours(1)}})) {
      const auto own = order_of_two(rt, where, 100);
      ASSERT_EQ(own.size(), 200u);
      if (threaded()) {
        EXPECT_LE(longest_run(own), 3) << "limits of its own";
      }
    }
  }
}

TEST_P(spawn, a_turn_ends_when_its_time_is_over) {
  if (!threaded()) GTEST_SKIP() << "needs threads: time is virtual";
  struct slow_taker {
    std::vector<int>* order;
    int id;
    slow_taker(std::vector<int>* order, int id) : order(order), id(id) {}
    void take() {
      order->push_back(id);
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
      while (std::chrono::steady_clock::now() < until) {
      }
    }
  };
  runtime_options chosen = options();
  chosen.workers = 1;
  chosen.turn.messages = 1'000'000;
  chosen.turn.time = std::chrono::microseconds(500);
  runtime rt(chosen);
  std::vector<int> order;
  auto one = rt.spawn<slow_taker>(pinned("slow"), unchecked{&order}, 1),
       two = rt.spawn<slow_taker>(pinned("slow"), unchecked{&order}, 2);
  rt.run();
  rt.spawn<slow_taker>(pinned("slow"), unchecked{&order}, 3).tell([one, two](slow_taker&) {
    for (int i = 0; i < 100; ++i) {
      one.tell<&slow_taker::take>();
      two.tell<&slow_taker::take>();
    }
  });
  rt.run();
  ASSERT_EQ(order.size(), 200u);
  // Once one of them has no mail left, all turns are the other's.
  const int first_done = 3 - order.back();
  order.erase(std::find(order.rbegin(), order.rend(), first_done).base(), order.end());
  ASSERT_GE(order.size(), 100u);
  // Three would be exact. But a thread whose messages were quick so far does not check the clock
  // after each one.
  EXPECT_LE(longest_run(order), 16);
  EXPECT_LE(longest_run({order.begin() + 50, order.end()}), 5);
}

TEST_P(spawn, ten_thousand_actors_each_get_their_message) {
  struct one_of_many {
    std::atomic<int>* seen;
    explicit one_of_many(std::atomic<int>* seen) : seen(seen) {}
    void add() { ++*seen; }
  };
  std::atomic<int> seen{0};
  const int count = fewer(10000);
  runtime rt(options());
  std::vector<ref<one_of_many>> all;
  for (int i = 0; i < count; ++i) all.push_back(rt.spawn<one_of_many>(&seen));
  for (int round = 0; round < 3; ++round) {
    for (auto& one : all) one.tell<&one_of_many::add>();
    rt.run();
  }
  EXPECT_EQ(seen.load(), 3 * count);
}

TROUPE_TEST_EACH(spawn, all_settings);
TROUPE_TEST_EACH(layout, each_policy);

}  // namespace
}  // namespace troupe::test
