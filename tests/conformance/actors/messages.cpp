// What may be sent, and in what form it arrives.
#include <any>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

class messages : public conformance {};

struct base_actor {
  int inherited_calls = 0;
  virtual ~base_actor() = default;
  void inherited(int n) { inherited_calls += n; }
  virtual void overridden() { inherited_calls += 1000; }
};

struct actor : base_actor {
  std::vector<std::string> said;
  mutable int const_calls = 0;

  void move_only(std::unique_ptr<int> one, std::unique_ptr<int> two) {
    said.push_back(std::to_string(*one + *two));
  }
  void by_rvalue(std::string&& text) { said.push_back(std::move(text)); }
  void by_const_ref(const std::string& text) { said.push_back(text); }
  void by_value(std::string text, int n) { said.push_back(text + std::to_string(n)); }
  void nothing() { said.push_back("nothing"); }
  void look() const { ++const_calls; }
  void sure(int n) noexcept { said.push_back(std::to_string(n)); }
  void look_sure() const noexcept { ++const_calls; }
  void on_lvalue() & { said.push_back("lvalue"); }
  int answer(int n) { return said.push_back("answered"), n; }
  void overloaded(int) { said.push_back("int"); }
  void overloaded(const std::string&) { said.push_back("string"); }
  void overridden() override { said.push_back("overridden"); }
  void tuples(std::tuple<int, std::string> pair, std::tuple<> none) {
    static_cast<void>(none);
    said.push_back(std::get<1>(pair));
  }
  void one_tuple(std::tuple<int> one) { said.push_back(std::to_string(std::get<0>(one))); }
  void anything(std::any what) { said.push_back(std::to_string(std::any_cast<int>(what))); }
  void containers(std::vector<std::string> list, std::map<int, std::string> table,
                  std::optional<int> maybe) {
    said.push_back(list[0] + table[1] + std::to_string(*maybe));
  }
  void call(std::function<int()> f) { said.push_back(std::to_string(f())); }
  void call_once(std::move_only_function<int()> f) { said.push_back(std::to_string(f())); }
  void large(std::array<char, 5000> block) { said.push_back(std::string(1, block[4999])); }
  void shared(std::shared_ptr<int> one) { said.push_back(std::to_string(*one)); }
  void widened(long long n, double d) { said.push_back(std::to_string(n) + std::to_string(d > 0)); }
  void vouched(unchecked<const int*> p) { said.push_back(std::to_string(*p.value)); }
  void function(int (*f)(int)) { said.push_back(std::to_string(f(1))); }
};

int twice(int n) { return n + 1; }

// Returns what the actor said during one run.
std::vector<std::string> said_by(runtime& rt, const ref<actor>& one) {
  std::vector<std::string> said;
  one.tell([&said](actor& self) { said = self.said; });
  rt.run();
  return said;
}

TEST_P(messages, arguments_of_all_kinds_arrive_as_they_were_sent) {
  static const int table = 11;
  for (const thread_kind& where : thread_kinds("messages")) {
    runtime rt(options());
    auto one = spawn_on<actor>(rt, where);
    std::string text = "text";
    one.tell<&actor::move_only>(std::make_unique<int>(1), std::make_unique<int>(2));
    one.tell<&actor::by_rvalue>(std::string("moved"));
    one.tell<&actor::by_rvalue>("made of a literal");
    one.tell<&actor::by_const_ref>(text);
    one.tell<&actor::by_const_ref>("literal");
    text = "changed after the send";
    one.tell<&actor::by_value>("value", 3);
    one.tell<&actor::nothing>();
    one.tell<&actor::sure>(4);
    one.tell<&actor::on_lvalue>();
    one.tell<&actor::answer>(5);
    one.tell<static_cast<void (actor::*)(int)>(&actor::overloaded)>(6);
    one.tell<static_cast<void (actor::*)(const std::string&)>(&actor::overloaded)>("s");
    one.tell<&base_actor::overridden>();
    one.tell<&actor::tuples>(std::tuple<int, std::string>(1, "in a tuple"), std::tuple<>());
    one.tell<&actor::one_tuple>(std::tuple<int>(7));
    one.tell<&actor::anything>(std::any(8));
    one.tell<&actor::containers>(std::vector<std::string>{"a"},
                                 std::map<int, std::string>{{1, "b"}}, 9);
    one.tell<&actor::call>([] { return 10; });
    one.tell<&actor::call_once>([n = std::make_unique<int>(11)] { return *n; });
    std::array<char, 5000> block{};
    block[4999] = 'z';
    one.tell<&actor::large>(block);
    one.tell<&actor::shared>(std::make_shared<int>(12));
    one.tell<&actor::widened>(13, 1.5f);
    one.tell<&actor::vouched>(unchecked<const int*>{&table});
    one.tell<&actor::function>(&twice);
    const std::vector<std::string> expected{"3",          "moved",      "made of a literal",
                                            "text",       "literal",    "value3",
                                            "nothing",    "4",          "lvalue",
                                            "answered",   "int",        "string",
                                            "overridden", "in a tuple", "7",
                                            "8",          "ab9",        "10",
                                            "11",         "z",          "12",
                                            "131",        "11",         "2"};
    EXPECT_EQ(said_by(rt, one), expected);
  }
}

TEST_P(messages, const_noexcept_and_inherited_methods_are_messages) {
  runtime rt(options());
  auto one = rt.spawn<actor>();
  one.tell<&actor::look>();
  one.tell<&actor::look_sure>();
  one.tell<&base_actor::inherited>(5);
  one.tell<&actor::inherited>(6);
  int looked = 0, inherited = 0;
  one.tell([&](actor& self) { looked = self.const_calls, inherited = self.inherited_calls; });
  rt.run();
  EXPECT_EQ(looked, 2);
  EXPECT_EQ(inherited, 11);
}

TEST_P(messages, callables_of_all_kinds_are_called_with_the_actor) {
  struct functor {
    int n;
    void operator()(actor& self) && { self.said.push_back("functor" + std::to_string(n)); }
  };
  runtime rt(options());
  auto one = rt.spawn<actor>();
  one.tell([](actor& self) { self.said.push_back("lambda"); });
  one.tell([held = std::make_unique<int>(1)](actor& self) mutable {
    self.said.push_back("move only " + std::to_string(*held));
  });
  one.tell(functor{2});
  one.tell(+[](actor& self) { self.said.push_back("function"); });
  std::function<void(actor&)> kept = [](actor& self) { self.said.push_back("std::function"); };
  one.tell(kept);
  one.tell(std::move_only_function<void(actor&)>(
      [](actor& self) { self.said.push_back("move_only_function"); }));
  one.tell([](const actor&) { return 5; });
  EXPECT_EQ(said_by(rt, one),
            (std::vector<std::string>{"lambda", "move only 1", "functor2", "function",
                                      "std::function", "move_only_function"}));
}

TEST_P(messages, a_bound_method_is_a_value_that_fires_later_and_often) {
  runtime rt(options());
  auto one = rt.spawn<actor>();
  auto say = one.bind<&actor::by_value>(std::string("bound"));
  auto all = one.bind<&actor::nothing>();
  std::function<void(int)> kept = say;
  kept(1);
  say(2);
  all();
  std::thread([open = rt.hold(), kept] { kept(3); }).join();
  EXPECT_EQ(said_by(rt, one), (std::vector<std::string>{"bound1", "bound2", "nothing", "bound3"}));
  one = {};
  rt.run();
  say(4);  // the bound message holds a ref to its actor
  rt.run();
}

TEST_P(messages, refs_travel_in_messages) {
  struct friends {
    std::vector<ref<friends>> known;
    std::vector<int> heard;
    void meet(ref<friends> one) { known.push_back(std::move(one)); }
    void meet_all(std::vector<ref<friends>> all) {
      known.insert(known.end(), all.begin(), all.end());
    }
    void introduce(ref<friends> to) {
      for (const auto& one : known) to.template tell<&friends::meet>(one);
    }
    void call(int n) {
      for (const auto& one : known) one.template tell<&friends::hear>(n);
    }
    void hear(int n) { heard.push_back(n); }
    void forget() { known.clear(); }
  };
  runtime rt(options());
  auto a = rt.spawn<friends>(), b = rt.spawn<friends>(pinned("b")),
       c = rt.spawn<friends>(on_main());
  a.tell<&friends::meet_all>(std::vector{b, c, a});
  a.tell<&friends::introduce>(c);
  rt.run();
  c.tell<&friends::call>(7);
  rt.run();
  int heard = 0;
  for (const auto& one : {a, b, c}) {
    one.tell([&heard](friends& self) { heard += static_cast<int>(self.heard.size()); });
    rt.run();
    one.tell<&friends::forget>();
  }
  rt.run();
  EXPECT_EQ(heard, 3);
}

TEST_P(messages, refs_are_values) {
  runtime rt(options());
  ref<actor> none, one = rt.spawn<actor>(), two = rt.spawn<actor>(), same = one;
  EXPECT_FALSE(none);
  EXPECT_TRUE(one);
  EXPECT_EQ(one, same);
  EXPECT_NE(one, two);
  EXPECT_EQ(std::hash<ref<actor>>{}(one), std::hash<ref<actor>>{}(same));
  std::swap(one, two);
  EXPECT_EQ(two, same);
  two = std::move(two);
  two = *&two;
  EXPECT_EQ(two, same);
  ref<actor> moved = std::move(two);
  EXPECT_EQ(moved, same);
}

TEST_P(messages, an_argument_whose_copy_throws_sends_nothing_and_leaks_nothing) {
  struct refuses {
    std::shared_ptr<int> token = std::make_shared<int>(1);
    refuses() = default;
    refuses(const refuses& other) : token(other.token) { throw std::runtime_error("no copy"); }
  };
  struct taker {
    int taken = 0;
    void take(refuses, std::shared_ptr<int>) { ++taken; }
  };
  runtime rt(options());
  auto one = rt.spawn<taker>();
  const refuses argument;
  auto token = std::make_shared<int>(1);
  EXPECT_THROW(one.tell<&taker::take>(argument, token), std::runtime_error);
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_EQ(argument.token.use_count(), 1);
  int taken = 0;
  one.tell([&taken](taker& self) { taken = self.taken; });
  rt.run();
  EXPECT_EQ(taken, 0);
}

TEST_P(messages, a_null_ref_is_a_usage_error) {
  runtime rt(options());
  const ref<actor> none;
  auto token = std::make_shared<int>(1);
  EXPECT_THROW(none.tell<&actor::nothing>(), usage_error);
  EXPECT_THROW(none.tell<&actor::shared>(token), usage_error);
  EXPECT_THROW(none.tell([token](actor&) {}), usage_error);
  EXPECT_THROW(none.stop(), usage_error);
  EXPECT_THROW(none.bind<&actor::nothing>()(), usage_error);
  EXPECT_EQ(token.use_count(), 1);
  try {
    none.tell<&actor::nothing>();
  } catch (const usage_error& e) {
    EXPECT_NE(std::string(e.what()).find("spawn()"), std::string::npos);
  }
}

TEST_P(messages, self_is_only_for_the_running_actor) {
  struct asks {
    std::string* said;
    asks* other = nullptr;
    void ask() {
      try {
        static_cast<void>(self(this));
        *said += "mine ";
        static_cast<void>(self(other));
      } catch (const usage_error&) {
        *said += "not the other's";
      }
    }
  };
  asks alone{nullptr};
  EXPECT_THROW(static_cast<void>(self(&alone)), usage_error);
  std::string said;
  runtime rt(options());
  rt.spawn<asks>(&said, &alone).tell<&asks::ask>();
  rt.post([&alone] { EXPECT_THROW(static_cast<void>(self(&alone)), usage_error); });
  rt.run();
  EXPECT_EQ(said, "mine not the other's");
}

// A ref of a base class, wherever the base lies in the actor's object.
struct first_base {
  int first = 1;
  virtual ~first_base() = default;
  virtual int area() { return first; }
  void set_first(int n) { first = n; }
};
struct second_base {
  int pad[3] = {}, second = 2;
  void set(int n) { second = n; }
  int get() const { return second; }
  task<int> get_later(int n) {
    co_await yield();
    co_return second + n;
  }
  future<int> pass_on() { return self(this).template ask<&second_base::get>(); }
  ref<second_base> itself() { return self(this); }
  void fail() { throw std::runtime_error("a base fails"); }
};
template <bool Reentrant>
struct of_both : first_base, second_base {
  static constexpr bool reentrant = Reentrant;
  int area() override { return 16; }
  int sum() { return first * 100 + second; }
};

template <class T>
void use_as_bases(runtime& rt, ref<T> whole) {
  const ref<first_base> as_first = whole;
  ref<second_base> as_second = whole;
  as_first.template tell<&first_base::set_first>(4);
  as_second.template tell<&second_base::set>(5);
  auto sum = whole.template ask<&T::sum>();
  auto area = as_first.template ask<&first_base::area>();
  auto get = as_second.template ask<&second_base::get>();
  auto later = as_second.template ask<&second_base::get_later>(1);
  rt.run();
  EXPECT_EQ(sum.get(), 405);
  EXPECT_EQ(area.get(), 16);
  EXPECT_EQ(get.get(), 5);
  EXPECT_EQ(later.get(), 6);

  auto passed = as_second.template ask<&second_base::pass_on>();
  rt.run();
  EXPECT_EQ(passed.get(), 5);
  auto called = as_second.ask([](second_base& self) { return self.second; });
  as_second.template bind<&second_base::set>()(3);
  as_second.template tell_when<&second_base::set>(
      [](const second_base& self) { return self.second == 6; }, 60);
  as_second.tell([](second_base& self) { self.second = 6; });
  auto itself = as_second.template ask<&second_base::itself>();
  rt.run();
  EXPECT_EQ(called.get(), 5);
  const ref<second_base> kept = itself.get();
  EXPECT_EQ(kept, as_second);
  EXPECT_EQ(as_first, whole);
  EXPECT_EQ(kept.hash(), whole.hash());
  EXPECT_EQ(kept.id(), whole.id());
  auto last = kept.template ask<&second_base::get>();
  auto sent = [](ref<second_base> to) -> task<> { co_await to.send<&second_base::set>(7); };
  rt.spawn(sent(kept));
  rt.run();
  EXPECT_EQ(last.get(), 60);
  as_second.template tell<&second_base::fail>();
  EXPECT_THROW(rt.run(), std::runtime_error);
  EXPECT_NE(rt.thrown().method.find("second_base::fail"), std::string::npos) << rt.thrown().method;

  auto back = as_second.consume();
  rt.run();
  EXPECT_THROW(static_cast<void>(back.get()), usage_error) << "its object would be cut";
  auto watched = as_second.watch();
  as_second.stop();
  rt.run();
  EXPECT_EQ(watched.get().reason, ended::why::stopped);
  auto late = as_second.template ask<&second_base::get>();
  rt.run();
  EXPECT_THROW(late.get(), actor_stopped);
}

TEST_P(messages, a_ref_of_a_class_is_one_of_its_bases) {
  runtime rt(options());
  for (const thread_kind& where : thread_kinds("base", {.mailbox = {.messages = 100}})) {
    use_as_bases(rt, spawn_on<of_both<false>>(rt, where));
    use_as_bases(rt, spawn_on<of_both<true>>(rt, where));
  }
  use_as_bases(rt, rt.activate(std::make_unique<of_both<false>>()));
  EXPECT_EQ(rt.metrics().actors, 0u);
  const ref<second_base> none = ref<of_both<false>>();
  EXPECT_FALSE(none);
  EXPECT_THROW(none.tell<&second_base::set>(1), usage_error);
  static_assert(!std::is_convertible_v<ref<second_base>, ref<of_both<false>>> &&
                !std::is_convertible_v<ref<first_base>, ref<second_base>>);
  static_assert(sizeof(ref<second_base>) == sizeof(void*));
}

TEST_P(messages, an_activated_object_comes_back_by_a_base_with_a_virtual_destructor) {
  runtime rt(options());
  const ref<first_base> as_first = rt.activate(std::make_unique<of_both<true>>());
  auto back = as_first.consume();
  rt.run();
  EXPECT_EQ(back.get()->area(), 16);
}

struct far_away : std::array<int, 20'000>, second_base {};

TEST_P(messages, a_base_that_lies_too_far_behind_says_so) {
  runtime rt(options());
  const auto one = rt.spawn<far_away>();
  EXPECT_THROW(static_cast<void>(ref<second_base>(one)), usage_error);
  one.tell<&second_base::set>(1);
  rt.run();
}

TROUPE_TEST_EACH(messages, each_policy);

}  // namespace
}  // namespace troupe::test
