// Random actor programs under the simulated policy, each checked against a model: every message is
// handled or becomes a dead letter exactly once; delivery is causal (so first in, first out for
// each sender); every actor is destroyed once; and run() returns when the program has no work left.
#include <array>
#include <bitset>
#include <cinttypes>
#include <optional>
#include <random>
#include <set>

#include "support/conformance.hpp"

namespace troupe::test {
namespace {

constexpr std::size_t actors_max = 12, messages_max = 256;
using message_set = std::bitset<messages_max>;
// Which messages had been sent, for each receiver.
using knowledge = std::array<message_set, actors_max>;

// What should have happened, and what did happen. Only the simulation's thread uses it.
struct world {
  enum class fate : std::uint8_t { unsent, sent, handled, dead };
  struct mail {
    fate state = fate::unsent;
    std::size_t to = 0;
    knowledge before;  // what had been sent when this message was
  };
  explicit world(std::uint64_t seed) : random(seed) {}

  std::uint64_t pick(std::uint64_t bound) { return random() % bound; }
  bool chance(unsigned in_thousand) { return pick(1000) < in_thousand; }
  void complain(const std::string& what) {
    if (wrong.empty()) wrong = what;
  }
  void note(std::uint64_t event) { trace = (trace ^ event) * 0x100000001B3u; }

  void end_of(std::size_t id, fate how) {
    mail& one = letters[id];
    if (one.state != fate::sent) complain("message " + std::to_string(id) + " ended twice");
    one.state = how;
    settled[one.to].set(id);
  }

  std::mt19937_64 random;
  std::vector<mail> letters;
  // Messages that were handled or became dead letters, for each receiver.
  std::array<message_set, actors_max> settled;
  std::array<knowledge, actors_max> known{};  // what each actor knows
  knowledge known_outside{};
  std::size_t actors = 0, dead = 0, throws = 0;
  std::array<int, actors_max> alive{};
  bool mortal = false;  // an actor was stopped: messages may become dead letters
  std::uint64_t trace = 0xCBF29CE484222325u;
  std::string wrong;
};

// Travels in a message. If it is destroyed before the message was handled, it reports a dead
// letter.
class token {
 public:
  token(world& in, std::size_t id) : in_(&in), id_(id) {}
  token(token&& other) noexcept : in_(std::exchange(other.in_, nullptr)), id_(other.id_) {}
  token& operator=(token&&) = delete;
  ~token() {
    if (in_ == nullptr) return;
    ++in_->dead;
    if (!in_->mortal)
      in_->complain("message " + std::to_string(id_) + " died though nobody was stopped");
    in_->end_of(id_, world::fate::dead);
  }
  std::size_t handled() {
    in_->end_of(id_, world::fate::handled);
    in_ = nullptr;
    return id_;
  }

 private:
  world* in_;
  std::size_t id_;
};

class node;
using node_ref = ref<node>;
struct address {
  node_ref to;
  std::size_t id = 0;
};

class node {
 public:
  node(runtime& rt, world& in, std::size_t id, std::vector<address> known)
      : rt_(&rt), in_(&in), id_(id), known_(std::move(known)) {
    if (in_->alive[id_]++ != 0)
      in_->complain("actor " + std::to_string(id_) + " constructed twice");
    in_->note(1000 + id_);
  }
  node(const node&) = delete;
  node& operator=(const node&) = delete;
  ~node() {
    if (--in_->alive[id_] != 0) in_->complain("actor " + std::to_string(id_) + " destroyed twice");
    in_->note(2000 + id_);
  }

  void work(token mail, std::optional<address> friend_of) {
    if (inside_) in_->complain("handlers of one actor overlap");
    inside_ = true;
    struct leave {
      bool& inside;
      ~leave() { inside = false; }
    } guard{inside_};
    const std::size_t id = mail.handled();
    in_->note(id * 16 + id_);
    const world::mail& one = in_->letters[id];
    if (one.to != id_) in_->complain("message " + std::to_string(id) + " came to the wrong actor");
    // Delivery is causal: every message to this actor that had been sent before this one has been
    // settled.
    if ((one.before[id_] & ~in_->settled[id_]).any())
      in_->complain("message " + std::to_string(id) + " overtook an earlier one");
    knowledge& mine = in_->known[id_];
    for (std::size_t i = 0; i < actors_max; ++i) mine[i] |= one.before[i];
    mine[id_].set(id);
    if (friend_of) known_.push_back(std::move(*friend_of));
    act();
  }

  // `from` is what the sender knows.
  static void send(world& in, knowledge& from, const address& to,
                   std::optional<address> friend_of) {
    if (in.letters.size() >= messages_max) return;
    const std::size_t id = in.letters.size();
    in.letters.push_back({world::fate::sent, to.id, from});
    from[to.id].set(id);
    to.to.tell<&node::work>(token(in, id), std::move(friend_of));
  }

  static std::optional<address> make(runtime& rt, world& in, std::vector<address> known) {
    if (in.actors >= actors_max) return std::nullopt;
    const std::size_t id = in.actors++;
    const auto kind = in.pick(6);
    spawn_options chosen;
    if (in.chance(200)) chosen.on_error = error_policy::stop;
    if (in.chance(200))
      chosen.turn = {1 + static_cast<unsigned>(in.pick(3)), std::chrono::hours(1)};
    const thread_kind where = kind == 0   ? thread_kind(on_main(chosen))
                              : kind == 1 ? thread_kind(pinned("one", chosen))
                              : kind == 2 ? thread_kind(pinned("two", chosen))
                                          : thread_kind(chosen);
    return address{spawn_on<node>(rt, where, unchecked<runtime&>{rt}, unchecked<world&>{in}, id,
                                  std::move(known)),
                   id};
  }

 private:
  const address& someone() const { return known_[in_->pick(known_.size())]; }

  void act() {
    for (auto left = in_->pick(4); left > 0 && !known_.empty(); --left) {
      std::optional<address> friend_of;
      if (in_->chance(300)) friend_of = someone();
      if (in_->chance(100)) friend_of = address{self(this), id_};
      send(*in_, in_->known[id_], someone(), std::move(friend_of));
    }
    if (in_->chance(100)) send(*in_, in_->known[id_], address{self(this), id_}, std::nullopt);
    if (in_->chance(120)) {
      if (auto child = make(*rt_, *in_, known_)) {
        send(*in_, in_->known[id_], *child, std::nullopt);
        if (in_->chance(600)) known_.push_back(std::move(*child));
      }
    }
    if (in_->chance(80) && !known_.empty())
      known_.erase(known_.begin() + static_cast<std::ptrdiff_t>(in_->pick(known_.size())));
    if (in_->chance(60) && !known_.empty()) {
      rt_->post([in = in_, to = someone()] {
        // A posted procedure knows of no message.
        knowledge nothing{};
        send(*in, nothing, to, std::nullopt);
      });
    }
    if (in_->chance(15) && !known_.empty()) {
      in_->mortal = true;
      someone().to.stop();
    }
    if (in_->chance(3)) {
      in_->mortal = true;
      rt_->stop(stop_mode::discard);
    }
    if (in_->chance(40)) {
      ++in_->throws;
      in_->mortal = true;  // the actor's policy may be to stop
      throw std::runtime_error("as planned");
    }
  }

  runtime* rt_;
  world* in_;
  std::size_t id_;
  std::vector<address> known_;
  bool inside_ = false;
};

struct outcome {
  std::uint64_t trace = 0;
  std::chrono::nanoseconds time{0};
  std::size_t messages = 0, dead = 0;
  std::string wrong;
};

outcome play(std::uint64_t program, std::uint64_t seed) {
  world in(program);
  outcome result;
  {
    runtime_options chosen;
    chosen.policy = policy::simulated;
    chosen.seed = seed;
    chosen.turn.messages = 1 + static_cast<unsigned>(in.pick(8));
    runtime rt(chosen);
    std::vector<address> first;
    for (int i = 0; i < 5; ++i) {
      if (auto made = node::make(rt, in, first)) first.push_back(std::move(*made));
    }
    for (int step = 0; step < 3; ++step) {
      const std::size_t failed_before = in.throws;
      for (int i = 0; i < 4; ++i) {
        const address& to = first[in.pick(first.size())];
        node::send(in, in.known_outside, to,
                   in.chance(500) ? std::optional(first[in.pick(first.size())]) : std::nullopt);
      }
      if (step == 1) first.erase(first.begin());
      std::size_t thrown = 0;
      try {
        rt.run();
      } catch (const std::runtime_error&) {
        ++thrown;
      }
      // When run() returns, no message is on its way and no failure was lost.
      for (std::size_t id = 0; id < in.letters.size(); ++id) {
        if (in.letters[id].state == world::fate::sent)
          in.complain("run() returned before message " + std::to_string(id));
      }
      if (thrown + rt.errors().size() != in.throws - failed_before)
        in.complain("failures were lost");
      rt.clear_errors();
      // From now on the outside knows of all messages.
      for (std::size_t id = 0; id < in.letters.size(); ++id)
        in.known_outside[in.letters[id].to].set(id);
    }
    // A stop may discard the construction of an actor with a thread of its own, and counts it as a
    // dead letter.
    if (rt.metrics().dead_letters < in.dead) in.complain("dead letters were not counted");
    if (!in.mortal && rt.metrics().dead_letters != 0) in.complain("dead letters without a stop");
    result.time = rt.now();
  }
  for (const int alive : in.alive) {
    if (alive != 0) in.complain("an actor outlived its runtime");
  }
  result.trace = in.trace;
  result.messages = in.letters.size();
  result.dead = in.dead;
  result.wrong = in.wrong;
  return result;
}

// Ten thousand programs, a thousand in each test. TROUPE_SEED plays only the program of that seed.
class random_programs : public testing::TestWithParam<std::uint64_t> {};

TEST_P(random_programs, agree_with_the_model) {
  const auto count = static_cast<std::uint64_t>(fewer(1000, 10));
  const seed_range seeds = seeds_from(GetParam() * 1000, count);
  std::size_t messages = 0, dead = 0;
  for_each_seed(seeds, [&](std::uint64_t seed) {
    const outcome result = play(seed, seed);
    messages += result.messages;
    dead += result.dead;
    ASSERT_EQ(result.wrong, "");
    if (seed % 10 == 0) {
      const outcome again = play(seed, seed);
      ASSERT_EQ(again.trace, result.trace) << "the seed twice";
      ASSERT_EQ(again.time, result.time) << "the seed twice";
    }
  });
  if (seeds.first == seeds.last) return;  // a seed is repeated
  // A generator that makes programs without messages would show nothing.
  EXPECT_GT(messages / count, 20u);
  EXPECT_GT(dead, 0u);
}

INSTANTIATE_TEST_SUITE_P(thousands, random_programs, testing::Range<std::uint64_t>(0, 10));

// A program whose own choices are fixed: only the order differs.
std::vector<int> order_with_seed(std::uint64_t seed) {
  struct taker {
    std::vector<int>* order;
    int id;
    taker(std::vector<int>* order, int id) : order(order), id(id) {}
    void take() { order->push_back(id); }
  };
  std::vector<int> order;
  runtime_options chosen;
  chosen.policy = policy::simulated;
  chosen.seed = seed;
  runtime rt(chosen);
  std::vector<ref<taker>> all;
  for (int id = 0; id < 6; ++id) {
    const thread_kind where = id == 4   ? thread_kind(pinned("one"))
                              : id == 5 ? thread_kind(on_main())
                                        : thread_kind();
    all.push_back(spawn_on<taker>(rt, where, unchecked{&order}, id));
  }
  for (int round = 0; round < 3; ++round) {
    for (auto& one : all) one.tell<&taker::take>();
  }
  rt.run();
  return order;
}

TEST(simulated_policy, one_seed_gives_one_order_and_others_give_others) {
  const scoped_environment no_seed("TROUPE_SEED", nullptr);
  std::set<std::vector<int>> orders;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto order = order_with_seed(seed);
    EXPECT_EQ(order.size(), 18u);
    EXPECT_EQ(order, order_with_seed(seed));
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 25u);
}

TEST(simulated_policy, the_environments_seed_goes_first) {
  std::vector<int> with_seven;
  {
    const scoped_environment no_seed("TROUPE_SEED", nullptr);
    with_seven = order_with_seed(7);
  }
  const scoped_environment seed("TROUPE_SEED", "7");
  EXPECT_EQ(order_with_seed(1), with_seven);
}

}  // namespace
}  // namespace troupe::test
