// Durable actors under seeds, with handlers that throw, are slow, drop what they have asked and
// send more than fits into memory: each message that was acknowledged has its effect once.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kit/clock_and_random.hpp"
#include "support/conformance.hpp"
#include "troupe/durable/simulated_storage.hpp"
#include "troupe/durable/store.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using durable::store;

bool one_in(std::uint64_t count) { return kit::random_number() % count == 0; }
void throw_one_in(std::uint64_t count) {
  if (one_in(count)) throw std::runtime_error("by chance");
}
// A failure of an ask may be stored under its id. Posts are handled again until they succeed.
enum class mood : std::uint8_t { mild, throws };

struct Tally {
  using event = std::pair<std::string, int>;
  static constexpr std::uint64_t events_between_snapshots = 3;
  std::map<std::string, int> got;
  void apply(const event& one) {
    if (one.second < 0) throw std::runtime_error("no such event");
    got[one.first] += one.second;
  }
  durable::changes<event, int> add(std::string what, mood now) const {
    durable::changes<event, int> made{1, {{what, 1}}};
    if (now == mood::throws && one_in(3)) made.events.push_back({what, -1});
    return made;
  }
  Tally all() const { return *this; }
};

constexpr int parts = 9;

struct Box {
  std::map<std::string, int> got;

  int add(std::string what, mood now) {
    if (now == mood::throws) throw_one_in(3);
    return ++got[what];
  }
  // What is asked must not fail, for its failure would be stored.
  task<int> give(durable::turn&, std::string what) {
    if (one_in(2)) co_await sleep_for(std::chrono::microseconds(kit::random_number() % 400));
    co_return ++got[what];
  }
  void scatter(durable::turn& turn, std::string what, mood now) {
    ++got[what];
    for (int i = 0; i < parts; ++i) {
      const std::string part = what + "/" + std::to_string(i);
      turn.post<&Box::add>("box " + std::to_string(i % 3), part, mood::throws);
    }
    if (now == mood::throws) throw_one_in(4);
  }
  // Only as a post: it is handled again until it has not thrown.
  task<> gather(durable::turn& turn, std::string what) {
    auto dropped = turn.ask<&Box::give>("low 1", what + "/dropped");
    auto first = turn.ask<&Box::give>("low 0", what + "/0");
    std::optional<future<int>> unwanted(std::move(dropped));
    if (one_in(2)) unwanted.reset();
    co_await std::move(first);
    throw_one_in(4);
    auto second = turn.ask<&Box::give>("low 1", what + "/1");
    co_await std::move(second);
    ++got[what];
    throw_one_in(4);
  }
  // Asks one that asks others, two of which may be late.
  task<> deep(durable::turn& turn, std::string what, mood now) {
    auto asked = turn.ask<&Box::middle>("mid " + std::to_string(what.size() % 2), what);
    co_await std::move(asked);
    if (now == mood::throws) throw_one_in(2);
    auto again = turn.ask<&Box::middle>("mid 0", what + "/again");
    co_await std::move(again);
    ++got[what];
    if (now == mood::throws) throw_one_in(3);
  }
  task<int> middle(durable::turn& turn, std::string what) {
    auto first = turn.ask<&Box::give>("low 0", what + "/low");
    auto late = turn.ask<&Box::give>("low 1", what + "/late").timeout(100us);
    auto counts = turn.ask<&Tally::add>("low 0", what + "/tally", mood::mild);
    try {
      co_await std::move(late);
    } catch (const timed_out&) {
    }
    co_await std::move(first);
    co_await std::move(counts);
    co_return ++got[what + "/mid"];
  }
  void remind(durable::turn& turn, std::string what, std::int64_t at_ms, mood now) {
    turn.remind_at<&Box::add>(what, std::chrono::sys_seconds(1'700'000'000s) + 1ms * at_ms, what,
                              mood::throws);
    if (now == mood::throws) throw_one_in(3);
  }
  Box all() const { return *this; }
};

class hostile_program {
 public:
  explicit hostile_program(runtime& rt) : rt_(rt) {}

  task<std::string> run() {
    auto starts = restart();
    co_await std::move(starts);
    db_.set_faults({25, 15, 200us});
    std::vector<future<>> clients;
    for (int client = 0; client < 4; ++client) clients.push_back(rt_.spawn(sends(client)));
    for (int kill = 0; kill < 4; ++kill) {
      co_await sleep_for(std::chrono::microseconds(500 + kit::random_number() % 6'000));
      auto again = restart();
      co_await std::move(again);
    }
    for (auto& one : clients) co_await std::move(one);
    db_.set_faults({});
    co_await sleep_for(5s);
    auto checks = check();
    co_return co_await std::move(checks);
  }

 private:
  task<> restart() {
    for (;;) {
      std::optional<store> opened;
      try {
        auto opens =
            store::open(rt_, db_.storage(), options(),
                        durable::kind<Box, &Box::add, &Box::give, &Box::scatter, &Box::gather,
                                      &Box::deep, &Box::middle, &Box::remind, &Box::all>(),
                        durable::kind<Tally, &Tally::add, &Tally::all>());
        opened.emplace(co_await std::move(opens));
      } catch (const database::error&) {
      }
      if (opened) {
        store_ = std::move(opened);
        co_return;
      }
      co_await sleep_for(50us);
    }
  }
  static durable::options options() {
    durable::options chosen;
    chosen.actors_max = 2;
    chosen.retry_first = 1ms;
    chosen.away_first = 1ms;
    chosen.failures_max = 1'000'000;
    chosen.waiting_max = 4;
    return chosen;
  }

  template <auto Method, class T, class... Args>
  task<> until_acknowledged(std::string to, std::string id, bool posts, mood now, Args... args) {
    for (;;) {
      bool acknowledged = false;
      try {
        const auto one = store_->get<T>(to).with_id(durable::message_id::of(id));
        if (posts) {
          auto posted = one.template post<Method>(args...).timeout(5ms);
          // Somebody else wants the answer.
          if (now == mood::mild && one_in(3)) static_cast<void>(one.template ask<Method>(args...));
          co_await std::move(posted);
        } else {
          if (one_in(6)) static_cast<void>(one.template post<Method>(args...));
          auto asked = one.template ask<Method>(args...).timeout(5ms);
          co_await std::move(asked);
        }
        acknowledged = true;
      } catch (const error&) {
      }
      if (acknowledged) co_return;
      co_await sleep_for(std::chrono::microseconds(kit::random_number() % 1'000));
    }
  }

  task<> sends(int client) {
    for (int i = 0; i < 8; ++i) {
      const std::string id = std::to_string(client) + "." + std::to_string(i);
      const std::string to = "box " + std::to_string(kit::random_number() % 3);
      const bool posts = one_in(2);
      const mood now = posts && one_in(2) ? mood::throws : mood::mild;
      switch (kit::random_number() % 6) {
        case 0: {
          auto call = until_acknowledged<&Box::add, Box>(to, id, posts, now, id, now);
          co_await std::move(call);
          break;
        }
        case 1: {
          auto call = until_acknowledged<&Box::scatter, Box>(to, id, posts, now, id, now);
          co_await std::move(call);
          for (int part = 0; part < parts; ++part)
            expected_.push_back(id + "/" + std::to_string(part));
          break;
        }
        case 2: {
          auto call = until_acknowledged<&Box::gather, Box>(to, id, true, mood::throws, id);
          co_await std::move(call);
          expected_.push_back(id + "/0");
          expected_.push_back(id + "/1");
          break;
        }
        case 3: {
          auto call = until_acknowledged<&Box::deep, Box>(to, id, posts, now, id, now);
          co_await std::move(call);
          for (const char* const of : {"/low", "/tally", "/mid"}) {
            expected_.push_back(id + of);
            expected_.push_back(id + "/again" + of);
          }
          break;
        }
        case 4: {
          const auto passed = std::chrono::floor<std::chrono::milliseconds>(rt_.now()).count();
          const std::int64_t at = passed + 1 + static_cast<std::int64_t>(kit::random_number() % 10);
          auto call = until_acknowledged<&Box::remind, Box>(to, id, posts, now, id, at, now);
          co_await std::move(call);
          break;
        }
        default: {
          auto call = until_acknowledged<&Tally::add, Tally>(to, id, posts, now, id, now);
          co_await std::move(call);
        }
      }
      expected_.push_back(id);
    }
  }

  template <class T>
  task<> look(std::string key, std::map<std::string, int>& into) {
    std::optional<T> found;
    while (!found) {
      try {
        auto asked = store_->get<T>(key).template ask<&T::all>();
        found = co_await std::move(asked);
      } catch (const error&) {
      }
      if (!found) co_await sleep_for(1ms);
    }
    for (const auto& [what, times] : found->got) into[what] += times;
  }

  bool has_rows(const char* of) const { return db_.dump().find(of) != std::string::npos; }

  // A handler that throws by chance may do so 20 times in a row, and then its message waits for
  // 10 s before each further try. Returns false if something is left after a thousand tries.
  task<bool> all_handled() {
    std::chrono::milliseconds pause = 5ms;
    for (int round = 0; round < 1'000; ++round) {
      if (!has_rows("inbox ") && !has_rows("reminder ")) co_return true;
      co_await sleep_for(pause);
      pause = std::min<std::chrono::milliseconds>(2 * pause, 10s);
    }
    co_return false;
  }

  task<std::string> check() {
    auto waits = all_handled();
    if (!co_await std::move(waits)) co_return "messages are left: " + db_.dump();
    std::map<std::string, int> got;
    for (int i = 0; i < 3; ++i) {
      auto looks = look<Box>("box " + std::to_string(i), got);
      co_await std::move(looks);
      auto tallies = look<Tally>("box " + std::to_string(i), got);
      co_await std::move(tallies);
      auto mid = look<Box>("mid " + std::to_string(i), got);
      co_await std::move(mid);
      auto low_tally = look<Tally>("low " + std::to_string(i), got);
      co_await std::move(low_tally);
      auto low = look<Box>("low " + std::to_string(i), got);
      co_await std::move(low);
    }
    std::string wrong;
    for (const std::string& one : expected_) {
      if (got[one] != 1) wrong += one + " had its effect " + std::to_string(got[one]) + " times; ";
    }
    for (const auto& [what, times] : got) {
      if (times > 1) wrong += what + " had its effect " + std::to_string(times) + " times; ";
    }
    const std::string rows = db_.dump();
    if (has_rows("inbox ") || has_rows("dead ")) wrong += "messages are left: " + rows;
    for (std::size_t at = rows.find("answer "); at != std::string::npos;
         at = rows.find("answer ", at + 1)) {
      const std::string line = rows.substr(at, rows.find('\n', at) - at);
      if (!line.ends_with(std::string(32, '0'))) wrong += "left: " + line + "; ";
    }
    if (store_->counts().waiting != 0)
      wrong += std::to_string(store_->counts().waiting) + " messages count as waiting; ";
    co_return wrong;
  }

  runtime& rt_;
  durable::simulated_database db_;
  std::optional<store> store_;
  std::vector<std::string> expected_;
};

std::string what_is_wrong(std::uint64_t seed) {
  runtime rt({.policy = policy::simulated, .seed = seed});
  hostile_program program(rt);
  future<std::string> result = rt.spawn(program.run());
  rt.run();
  return result.get();
}

TEST(durable_simulation, what_was_acknowledged_has_its_effect_once_whatever_handlers_do) {
  for_each_seed(chosen_seeds(slow ? 20 : 100, 2'000),
                [](std::uint64_t seed) { EXPECT_EQ(what_is_wrong(seed), ""); });
}

// Throws as often as it is told, whichever object it has.
struct Stubborn {
  int got = 0;
  static inline int throws_left = 0;

  void work() {
    if (throws_left > 0) {
      --throws_left;
      throw std::runtime_error("not yet");
    }
    ++got;
  }
  int count() const { return got; }
};

// How long a message takes to be handled that fails so often, and its effect.
task<std::pair<std::chrono::nanoseconds, int>> handled_after(runtime& rt, int failures) {
  Stubborn::throws_left = failures;
  durable::simulated_database db;
  durable::options chosen;
  chosen.retry_first = 1ms;
  chosen.failures_max = 1'000;
  auto opens = store::open(rt, db.storage(), chosen,
                           durable::kind<Stubborn, &Stubborn::work, &Stubborn::count>());
  const store all = co_await std::move(opens);
  auto posts = all.get<Stubborn>("a").post<&Stubborn::work>();
  co_await std::move(posts);
  const std::chrono::nanoseconds posted = rt.now();
  auto asks = all.get<Stubborn>("a").ask<&Stubborn::count>();
  const int effects = co_await std::move(asks);
  co_return std::pair(rt.now() - posted, effects);
}

// The pauses double up to 10 s. So whoever checks what became of a message cannot stop after a
// minute: one in some thousand messages of the simulation above fails twenty times in a row.
TEST(durable_simulation, a_message_that_fails_often_is_late_and_has_its_effect_once) {
  for (const int failures : {0, 1, 14, 18, 30}) {
    runtime rt({.policy = policy::simulated, .seed = 1});
    future<std::pair<std::chrono::nanoseconds, int>> handled =
        rt.spawn(handled_after(rt, failures));
    rt.run();
    const auto [took, effects] = handled.get();
    std::chrono::milliseconds pauses{0};
    for (int i = 0; i < failures; ++i)
      pauses += std::min<std::chrono::milliseconds>(10s, 1ms * (1 << std::min(i, 20)));
    EXPECT_EQ(effects, 1);
    EXPECT_GE(took, pauses) << failures << " failures";
    EXPECT_LT(took, pauses + 1s) << failures << " failures";
  }
}

}  // namespace
}  // namespace troupe::test
