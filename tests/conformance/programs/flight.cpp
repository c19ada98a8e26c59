// The flight recorder: which turns it keeps, with their handlers, lines and times; that another
// thread may read it meanwhile; and that a crash writes it.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "observe/flight/last_turns.hpp"
#include "support/observed.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t ring_bytes = std::size_t{64} << 10;
constexpr std::size_t ring_records = 8192;  // the greatest power of two that fits

class flight_recorders : public conformance {
 protected:
  runtime_options recorded() const {
    // Gives this thread a time: the turns of earlier tests are older.
    trace_mark("a test begins");
    runtime_options chosen = options();
    chosen.flight_recorder_bytes = ring_bytes;
    return chosen;
  }
};

struct flown_stage {
  void first(int) {}
  void second(int) {}
  void third(int) {}
  void slow() { std::this_thread::sleep_for(2ms); }  // sleeps: what its time in the ring must show
  int answer() { return 7; }
  void crash() { ::raise(SIGSEGV); }
};
struct flown_asker {
  ref<flown_stage> of;
  static constexpr unsigned line = __LINE__ + 1;
  task<int> asks() { co_return co_await of.ask<&flown_stage::answer>(); }
};
task<> ask_in_order(ref<flown_stage> stage, ref<flown_asker> asker) {
  for (int i = 0; i < 3; ++i) co_await stage.ask<&flown_stage::answer>();
  stage.tell<&flown_stage::slow>();
  co_await asker.ask<&flown_asker::asks>();
}
struct flown_pair {
  ref<flown_pair> other;
  void meet(ref<flown_pair> whom) { other = std::move(whom); }
  void hit(int left) {
    if (left > 0) other.tell<&flown_pair::hit>(left - 1);
    if (left <= 1) other = {};
  }
};

struct seen_turn {
  std::string text, thread;
  std::uint64_t ticks;
  std::uint32_t actor;
  unsigned messages;
};

std::string text_of(const observe::last_turn& one) {
  std::string text;
  {
    observe::output to(text);
    observe::write_turn(to, one);
  }
  return text;
}

// The records since that moment, oldest first, by a reader that began at `now`.
std::vector<seen_turn> turns_since(std::uint64_t ticks, std::uint64_t now = observe::now_ticks()) {
  const auto all = std::make_unique<observe::last_turns>(now);
  std::vector<seen_turn> found;
  observe::last_turn one;
  while (all->next(one)) {
    if (one.ticks < ticks) continue;
    found.push_back({text_of(one), one.thread->thread_name(), one.ticks, one.number, one.messages});
  }
  return {found.rbegin(), found.rend()};
}

std::size_t at(const std::vector<seen_turn>& all, const std::string& words) {
  std::size_t i = 0;
  while (i < all.size() && all[i].text.find(words) == std::string::npos) ++i;
  return i;
}

std::uint64_t time_of(const std::string& handler, std::uint64_t began) {
  const std::vector<seen_turn> all = turns_since(began);
  const std::size_t found = at(all, handler);
  return found == all.size() ? 0 : all[found].ticks;
}
// Waits until a turn is recorded, and a time behind it: before that each look gives it another one.
task<> recorded_turn(std::uint64_t began, std::string handler) {
  for (std::uint64_t ticks = 0; ticks == 0 || time_of(handler, began) != ticks;) {
    co_await sleep_for(4ms);
    ticks = time_of(handler, began);
  }
}
// Each message has a turn of its own, with a later time: the turn before has been recorded.
task<> tell_in_order(ref<flown_stage> stage) {
  const std::uint64_t began = observe::now_ticks();
  stage.tell<&flown_stage::first>(1);
  co_await recorded_turn(began, "flown_stage::first");
  stage.tell<&flown_stage::second>(1);
  co_await recorded_turn(began, "flown_stage::second");
  stage.tell<&flown_stage::third>(1);
  co_await recorded_turn(began, "flown_stage::third");
  stage.tell<&flown_stage::crash>();
}

TEST_P(flight_recorders, name_the_actor_the_handler_and_the_line_in_order) {
  const std::uint64_t began = observe::now_ticks();
  std::uint64_t stage_id = 0;
  {
    runtime rt(recorded());
    const auto stage = rt.spawn<flown_stage>();
    stage_id = stage.id();
    rt.spawn(ask_in_order(stage, rt.spawn<flown_asker>(stage)));
    rt.run();
  }
  const std::vector<seen_turn> all = turns_since(began);
  const std::size_t answer = at(all, "flown_stage::answer"),
                    slow_one = at(all, "flown_stage::slow"), asks = at(all, "flown_asker::asks");
  ASSERT_LT(asks, all.size());
  EXPECT_EQ(all[answer].actor, stage_id);
  EXPECT_LT(answer, slow_one);
  const std::size_t waits = at(all, " waits at flight.cpp:" + std::to_string(flown_asker::line));
  ASSERT_LT(waits, all.size());
  EXPECT_EQ(all[waits].actor, all[asks].actor);
  EXPECT_LE(all[asks].ticks, all[waits].ticks);
}

TEST_P(flight_recorders, keep_the_number_of_messages_of_a_turn) {
  const std::uint64_t began = observe::now_ticks();
  constexpr int sent = 1000;
  {
    runtime rt(recorded());
    const auto stage = rt.spawn<flown_stage>();
    for (int i = 0; i < sent; ++i) stage.tell<&flown_stage::first>(i);
    for (int i = 0; i < 3; ++i) stage.tell<&flown_stage::second>(i);
    rt.run();
  }
  unsigned most = 0, all = 0;
  for (const seen_turn& one : turns_since(began)) {
    if (one.text.find("flown_stage::") == std::string::npos) continue;
    most = std::max(most, one.messages);
    all += one.messages;
  }
  EXPECT_GE(all, 3u);
  EXPECT_LE(most, observe::flight_recorder::messages_max);
}

// More turns than a ring has room for: the newest are there, each once.
TEST_P(flight_recorders, overwrite_the_oldest_turns) {
  const std::uint64_t began = observe::now_ticks();
  constexpr int turns = 3 * ring_records;
  {
    runtime rt(recorded());
    const auto left = rt.spawn<flown_pair>(), right = rt.spawn<flown_pair>();
    left.tell<&flown_pair::meet>(right);
    right.tell<&flown_pair::meet>(left);
    left.tell<&flown_pair::hit>(turns);
    rt.run();
  }
  std::map<std::string, std::size_t> each;
  std::map<std::string, std::uint64_t> last;
  std::size_t hits = 0;
  for (const seen_turn& one : turns_since(began)) {
    EXPECT_LE(last[one.thread], one.ticks) << one.text;
    last[one.thread] = one.ticks;
    ++each[one.thread];
    if (one.text.find("flown_pair::hit") != std::string::npos) ++hits;
  }
  for (const auto& [thread, count] : each) EXPECT_LT(count, ring_records) << thread;
  // Every second record may be one of time where turns are slow.
  EXPECT_GT(hits, ring_records / 4);
}

// A reader sees what was written, or nothing: here each actor has its handler, so that a mixture of
// two records names a handler that the actor does not have.
TEST_P(flight_recorders, may_be_read_while_threads_record) {
  if (GetParam().policy == policy::simulated) GTEST_SKIP() << "needs threads";
  std::atomic<bool> done{false};
  std::vector<std::string> mixtures;
  std::atomic<std::size_t> looks{0}, seen{0};
  std::uint64_t stage_id = 0;
  runtime rt(recorded());
  const auto stage = rt.spawn<flown_stage>();
  stage_id = stage.id();
  const std::uint64_t began = observe::now_ticks();
  std::jthread reader([&] {
    const auto turns = std::make_unique<observe::last_turns>(0);
    while (!done) {
      std::destroy_at(turns.get());
      std::construct_at(turns.get(), observe::now_ticks());
      observe::last_turn one;
      while (turns->next(one)) {
        if (one.ticks < began || !one.is_turn() || one.is == nullptr) continue;
        const bool of_stage =
            std::string_view(one.is->name).find("flown_stage") != std::string::npos;
        const bool of_pair = std::string_view(one.is->name).find("flown_pair") != std::string::npos;
        ++seen;
        if ((of_stage && one.number != stage_id) || (of_pair && one.number == stage_id))
          mixtures.push_back(text_of(one));
      }
      ++looks;
    }
  });
  for (int round = 0; round < fewer(100) || looks < 3; ++round) {
    const auto left = rt.spawn<flown_pair>(), right = rt.spawn<flown_pair>();
    left.tell<&flown_pair::meet>(right);
    right.tell<&flown_pair::meet>(left);
    left.tell<&flown_pair::hit>(2000);
    for (int i = 0; i < 200; ++i) stage.tell<&flown_stage::third>(i);
    rt.run();
  }
  done = true;
  reader.join();
  EXPECT_TRUE(mixtures.empty()) << mixtures.size() << " such as " << mixtures.front();
  EXPECT_GT(seen, 0u);
}

using flight_recorders_DeathTest = flight_recorders;

TEST_P(flight_recorders_DeathTest, are_written_at_a_crash_with_the_newest_turns_first) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto crash = [&] {
    runtime rt(recorded());
    rt.spawn(tell_in_order(rt.spawn<flown_stage>()));
    rt.run();
  };
  // A sanitizer's handler of the signal exits.
  EXPECT_EXIT(
      crash(), [](int status) { return status != 0; },
      "troupe: the last turns, newest first\n.* runs #[0-9]+ &.*flown_stage::crash\n"
      ".*flown_stage::third\n.*flown_stage::second\n.*flown_stage::first\n");
}

// The other threads continue while a crash is written.
TEST_P(flight_recorders, give_records_that_are_newer_than_the_reader_its_own_time) {
  const std::uint64_t began = observe::now_ticks();
  {
    runtime rt(recorded());
    rt.spawn(ask_in_order(rt.spawn<flown_stage>(), rt.spawn<flown_asker>(rt.spawn<flown_stage>())));
    rt.run();
  }
  const std::vector<seen_turn> all = turns_since(began, began);
  EXPECT_LT(at(all, "flown_stage::answer"), all.size());
  for (const seen_turn& turn : all) EXPECT_EQ(turn.ticks, began) << turn.text;
}

TEST_P(flight_recorders, record_nothing_without_the_option) {
  const std::uint64_t began = observe::now_ticks();
  {
    runtime rt(options());
    const auto stage = rt.spawn<flown_stage>();
    for (int i = 0; i < 10; ++i) stage.tell<&flown_stage::first>(i);
    rt.run();
  }
  for (const seen_turn& one : turns_since(began))
    EXPECT_EQ(one.text.find("flown_stage"), std::string::npos) << one.text;
}

TEST(flight_recorder_option, refuses_sizes_that_no_ring_can_have) {
  for (const std::size_t bytes : {std::size_t{1}, ring_bytes - 1, (std::size_t{16} << 20) + 1}) {
    try {
      runtime rt({.workers = 1, .flight_recorder_bytes = bytes});
      ADD_FAILURE() << bytes;
    } catch (const option_error& refused) {
      EXPECT_NE(
          std::string(refused.what()).find("flight_recorder_bytes = " + std::to_string(bytes)),
          std::string::npos);
    }
  }
}

TEST_P(observed_runtimes, answer_with_their_last_turns) {
  runtime_options chosen = observed();
  chosen.flight_recorder_bytes = ring_bytes;
  runtime rt(chosen);
  const auto stage = rt.spawn<flown_stage>();
  rt.spawn(ask_in_order(stage, rt.spawn<flown_asker>(stage)));
  rt.run();
  asker tool;
  const json answer = tool.ask("turns 100000");
  const auto is_answer = [](const json& one) {
    return one.value("handler", "").ends_with("flown_stage::answer");
  };
  const json& turns = answer.at("turns");
  ASSERT_TRUE(std::any_of(turns.begin(), turns.end(), is_answer)) << answer;
  std::int64_t before = 0;
  for (const json& one : turns) {
    EXPECT_LE(before, one.at("before_ns").get<std::int64_t>()) << one;
    before = one.at("before_ns").get<std::int64_t>();
  }
  for (const char* const wrong : {"turns", "turns 0", "turns 100001", "turns 1 2", "turns x"})
    EXPECT_TRUE(tool.ask(wrong).contains("error")) << wrong;
}

TROUPE_TEST_EACH(flight_recorders, all_settings);
TROUPE_TEST_EACH(flight_recorders_DeathTest, each_policy);

}  // namespace
}  // namespace troupe::test
