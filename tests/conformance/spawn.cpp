// Where actors live: sizes and alignments, threads of their own, limits of their turns.
#include <pthread.h>

#include <set>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

class spawn : public conformance {};

template <std::size_t Bytes>
struct sized {
  std::array<unsigned char, Bytes> block{};
  std::atomic<int>* right;
  explicit sized(std::atomic<int>* right) : right(right) { block.fill(static_cast<unsigned char>(Bytes)); }
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
    spawn_sizes<1, 7, 8, 32, 100, 232, 240, 256, 300, 1000, 4000, 4064, 4072, 4080, 4096, 5000, 65000, 65536, 100'000>(rt, right, 20);
  }
  EXPECT_EQ(right.load(), 19 * 20 * 2);
}

template <std::size_t Alignment>
struct alignas(Alignment) aligned {
  char first = 'a';
  std::atomic<int>* wrong;
  explicit aligned(std::atomic<int>* wrong) : wrong(wrong) { check(); }
  ~aligned() { check(); }
  void check() { *wrong += reinterpret_cast<std::uintptr_t>(this) % Alignment == 0 ? 0 : 1; }
};

template <std::size_t Alignment>
void spawn_aligned(runtime& rt, std::atomic<int>& wrong) {
  std::vector<ref<aligned<Alignment>>> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(rt.spawn<aligned<Alignment>>(&wrong));
    all.push_back(rt.spawn<aligned<Alignment>>(spawn_options{.turn = {3, {}}}, &wrong));
    all.push_back(rt.spawn<aligned<Alignment>>(pinned("aligned"), &wrong));
  }
  for (auto& one : all) one.template tell<&aligned<Alignment>::check>();
  rt.run();
}

TEST_P(spawn, over_aligned_objects_are_aligned) {
  std::atomic<int> wrong{0};
  {
    runtime rt(options());
    spawn_aligned<8>(rt, wrong);
    spawn_aligned<16>(rt, wrong);
    spawn_aligned<32>(rt, wrong);
    spawn_aligned<64>(rt, wrong);
    spawn_aligned<128>(rt, wrong);
    spawn_aligned<256>(rt, wrong);
    spawn_aligned<1024>(rt, wrong);
    spawn_aligned<2048>(rt, wrong);
  }
  EXPECT_EQ(wrong.load(), 0);
}

// Notes the thread of its constructor, handlers and destructor.
struct resident {
  std::set<std::thread::id>* threads;
  std::atomic<int>* handled;
  ref<resident> partner;
  resident(std::set<std::thread::id>* threads, std::atomic<int>* handled) : threads(threads), handled(handled) { note(); }
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
  std::set<std::thread::id> one, two, main_thread;  // each written on its one thread, so unguarded
  std::atomic<int> handled{0};
  {
    runtime rt(options());
    auto a = rt.spawn<resident>(pinned("one"), &one, &handled);
    auto b = rt.spawn<resident>(pinned("two"), &two, &handled);
    auto c = rt.spawn<resident>(on_main(), &main_thread, &handled);
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
    for (int i = 0; i < 10; ++i) all.push_back(rt.spawn<resident>(pinned("shared"), &threads, &handled));
    for (std::size_t i = 0; i < all.size(); ++i) all[i].tell<&resident::meet>(all[(i + 1) % all.size()]);
    for (auto& one : all) one.tell<&resident::hit>(20);
    rt.run();
    for (auto& one : all) one.stop();
  }
  EXPECT_EQ(handled.load(), 200);
  EXPECT_EQ(threads.size(), 1u);
}

TEST_P(spawn, a_pinned_thread_has_its_name) {
  if (!threaded()) GTEST_SKIP() << "there is one thread only";
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
  auto one = rt.spawn<asks>(pinned("a_rather_long_name"), &name);
  rt.run();
  one.tell<&asks::ask>();
  rt.run();
  EXPECT_EQ(name, "a_rather_long_n");
}

TEST_P(spawn, arguments_of_pinned_constructors_are_copied_or_moved_there) {
  struct built {
    std::string text, literal;
    std::unique_ptr<int> number;
    built(const std::string& text, std::string literal, std::unique_ptr<int> number)
        : text(text), literal(std::move(literal)), number(std::move(number)) {}
  };
  runtime rt(options());
  for (const spawn_options& where : {spawn_options{}, pinned("built"), on_main()}) {
    std::string text = "text";
    auto one = rt.spawn<built>(where, text, "literal", std::make_unique<int>(3));
    text = "changed";
    std::string seen;
    one.tell([&seen](built& self) { seen = self.text + self.literal + std::to_string(*self.number); });
    rt.run();
    EXPECT_EQ(seen, "textliteral3");
  }
}

// Turns.

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

// Two actors on one thread, each with many messages. It starts only when all are there.
std::vector<int> order_of_two(runtime& rt, const spawn_options& where, int messages) {
  std::vector<int> order;
  struct gate {
    std::atomic<bool>* open;
    explicit gate(std::atomic<bool>* open) : open(open) {}
    void wait() { wait_for(*open, true); }
  };
  std::atomic<bool> open{false};
  auto one = rt.spawn<taker>(where, &order, 1), two = rt.spawn<taker>(where, &order, 2);
  auto before = rt.spawn<gate>(where, &open);
  rt.run();
  before.tell<&gate::wait>();
  for (int i = 0; i < messages; ++i) {
    one.tell<&taker::take>();
    two.tell<&taker::take>();
  }
  set_and_wake(open, true);
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
    for (spawn_options where : {spawn_options{}, pinned("taker"), on_main()}) {
      const auto order = order_of_two(rt, where, 100);
      ASSERT_EQ(order.size(), 200u);
      if (threaded()) {
        EXPECT_LE(longest_run(order), static_cast<int>(limit));
      }
      where.turn = {3, std::chrono::hours(1)};
      const auto own = order_of_two(rt, where, 100);
      if (threaded()) {
        EXPECT_LE(longest_run(own), 3) << "limits of its own";
      }
    }
  }
}

TEST_P(spawn, a_turn_ends_when_its_time_is_over) {
  if (!threaded()) GTEST_SKIP() << "time is virtual";
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
  auto one = rt.spawn<slow_taker>(pinned("slow"), &order, 1), two = rt.spawn<slow_taker>(pinned("slow"), &order, 2);
  rt.run();
  rt.spawn<slow_taker>(pinned("slow"), &order, 3).tell([one, two](slow_taker&) {
    for (int i = 0; i < 100; ++i) {
      one.tell<&slow_taker::take>();
      two.tell<&slow_taker::take>();
    }
  });
  rt.run();
  ASSERT_EQ(order.size(), 200u);
  // Three would be exact; the clock is not looked at after every message of a thread that was quick so far.
  EXPECT_LE(longest_run(order), 16);
  EXPECT_LE(longest_run({order.begin() + 50, order.begin() + 150}), 5);
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

}  // namespace
}  // namespace troupe::test
