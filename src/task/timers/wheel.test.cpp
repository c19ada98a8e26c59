#include "task/timers/wheel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "troupe/base/platform.hpp"

namespace troupe::tasks {
namespace {

constexpr std::int64_t tick = wheel::tick_ns;
constexpr std::int64_t second = 1'000'000'000, day = 86'400 * second;
constexpr std::int64_t last_tick = INT64_MAX / tick;  // the last tick of any clock
constexpr unsigned levels = 8, slot_bits = 6;

struct alarm final : timer {
  alarm() noexcept : timer([](timer&) noexcept {}, timer_source::sleep) {}
  std::int64_t due_ns = 0;
};

// Never inline: g++ 12 would then assume that ticks beyond the range are possible.
TROUPE_NOINLINE void arm(wheel& clock, alarm& armed, std::int64_t due_ns) {
  armed.due_ns = due_ns;
  armed.due_tick = wheel::tick_of(due_ns);
  clock.insert(armed);
}

// Goes from one next_tick() to the next until a timer is due, at `now`. Returns the number of
// steps.
unsigned steps_to_due(wheel& clock, std::int64_t& now) {
  for (unsigned steps = 0;; ++steps) {
    const std::int64_t next = clock.next_tick();
    if (next == wheel::never) return UINT_MAX;
    EXPECT_GE(next, now);
    // The wheel may ask for a visit at the present only if a timer is due.
    if (steps != 0 && next == now) return steps;
    clock.advance(now = next);
  }
}

TEST(wheel, a_tick_never_lies_before_its_time) {
  EXPECT_EQ(wheel::tick_of(INT64_MIN), 0);
  EXPECT_EQ(wheel::tick_of(-1), 0);
  EXPECT_EQ(wheel::tick_of(0), 0);
  EXPECT_EQ(wheel::tick_of(1), 1);
  EXPECT_EQ(wheel::tick_of(tick), 1);
  EXPECT_EQ(wheel::tick_of(tick + 1), 2);
  EXPECT_EQ(wheel::tick_of(INT64_MAX), last_tick + 1);
}

TEST(wheel, an_empty_wheel_has_nothing_to_do) {
  wheel clock;
  for (const std::int64_t now : {std::int64_t{0}, std::int64_t{1}, day / tick, last_tick}) {
    clock.advance(now);
    EXPECT_TRUE(clock.empty());
    EXPECT_EQ(clock.next_tick(), wheel::never);
    EXPECT_EQ(clock.take_due(), nullptr);
  }
}

// Tries each timer alone, around each border of a slot or a level, and with the wheel's present
// around that border, too.
TEST(wheel, it_is_due_at_its_very_tick_at_all_borders) {
  std::vector<std::int64_t> borders;
  for (unsigned level = 0; level < levels; ++level) {
    for (const std::int64_t slot : {1, 2, 31, 32, 63, 64, 65}) {
      const std::int64_t at = slot << (level * slot_bits);
      if (at > last_tick) continue;
      for (const std::int64_t near : {at - 1, at, at + 1})
        borders.push_back(std::min(near, last_tick));
    }
  }
  for (const std::int64_t start : borders) {
    for (const std::int64_t due : borders) {
      wheel clock;
      alarm single;
      clock.advance(start);
      single.due_tick = due;
      clock.insert(single);
      std::int64_t now = start;
      const unsigned steps = steps_to_due(clock, now);
      ASSERT_EQ(now, std::max(start, due)) << "inserted at tick " << start << " for tick " << due;
      ASSERT_LE(steps, levels + 1);
      ASSERT_EQ(clock.take_due(), &single);
      ASSERT_TRUE(clock.empty());
    }
  }
}

TEST(wheel, one_advance_over_any_distance_finds_what_is_due_and_no_more) {
  wheel clock;
  std::vector<std::unique_ptr<alarm>> all;
  for (std::int64_t due = 1; due <= last_tick; due = due * 3 + 1) {
    all.push_back(std::make_unique<alarm>());
    arm(clock, *all.back(), due * tick);
  }
  const std::size_t half = all.size() / 2;
  clock.advance(all[half]->due_tick - 1);
  for (std::size_t i = 0; i < half; ++i)
    EXPECT_EQ(clock.take_due(), all[i].get()) << "the earliest first";
  EXPECT_EQ(clock.take_due(), nullptr);
  clock.advance(last_tick);
  for (std::size_t i = half; i < all.size(); ++i) EXPECT_EQ(clock.take_due(), all[i].get());
  EXPECT_TRUE(clock.empty());
}

TEST(wheel, the_far_ends_of_the_range_are_kept) {
  wheel clock;
  alarm past, zero, last, beyond;
  arm(clock, past, INT64_MIN);
  arm(clock, zero, 0);
  arm(clock, beyond, INT64_MAX);
  arm(clock, last, INT64_MAX - tick);
  EXPECT_EQ(clock.next_tick(), 0);
  clock.advance(0);
  EXPECT_EQ(clock.take_due(), &past);
  EXPECT_EQ(clock.take_due(), &zero);
  EXPECT_EQ(clock.take_due(), nullptr);
  std::int64_t now = 0;
  EXPECT_LE(steps_to_due(clock, now), levels + 1);
  EXPECT_EQ(now, last_tick);
  EXPECT_EQ(clock.take_due(), &last);
  EXPECT_EQ(clock.take_due(), nullptr) << "the end of time never comes";
  EXPECT_EQ(clock.next_tick(), last_tick + 1);
  clock.remove(beyond);
  EXPECT_TRUE(clock.empty());
  EXPECT_EQ(clock.next_tick(), wheel::never);
}

TEST(wheel, a_wheel_that_has_long_been_behind_is_not_early) {
  for (const std::int64_t idle :
       {std::int64_t{1}, std::int64_t{63}, std::int64_t{64}, day / tick, 3'000 * day / tick}) {
    wheel clock;
    alarm far, near;
    // Keeps the wheel from being empty; the wheel is not advanced meanwhile.
    arm(clock, far, 20'000 * day);
    arm(clock, near, (idle + 7) * tick);
    clock.advance(idle);
    EXPECT_EQ(clock.take_due(), nullptr);
    EXPECT_LE(clock.next_tick(), idle + 7);
    clock.advance(idle + 6);
    EXPECT_EQ(clock.take_due(), nullptr);
    clock.advance(idle + 7);
    EXPECT_EQ(clock.take_due(), &near);
    clock.remove(far);
    EXPECT_TRUE(clock.empty());
  }
}

TEST(wheel, those_who_are_due_can_still_be_removed) {
  for (unsigned removed = 0; removed < 8; ++removed) {
    wheel clock;
    alarm all[3];
    alarm later;
    for (auto& armed : all) arm(clock, armed, 5 * tick);
    clock.advance(5);
    for (unsigned i = 0; i < 3; ++i) {
      EXPECT_EQ(all[i].is, timer::state::due);
      if ((removed >> i & 1) != 0) clock.remove(all[i]);
    }
    arm(clock, later, 0);  // goes behind the others, wherever the list ends by now
    std::vector<timer*> found;
    while (timer* due = clock.take_due()) found.push_back(due);
    for (unsigned i = 0; i < 3; ++i) {
      const bool there = std::find(found.begin(), found.end(), &all[i]) != found.end();
      EXPECT_EQ(there, (removed >> i & 1) == 0);
      EXPECT_EQ(all[i].is, there ? timer::state::fired : timer::state::idle);
    }
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.back(), &later);
    EXPECT_TRUE(clock.empty());
  }
}

// Compares the wheel with a sorted list that does the same.
class both {
 public:
  explicit both(std::uint64_t seed) : random_(seed) {
    for (auto& idle : all_) idle_.push_back(&idle);
  }

  void play_until(std::int64_t end_ns) {
    while (now_ns_ < end_ns && !::testing::Test::HasFatalFailure()) {
      const auto step_kind = pick(100);
      if (step_kind < 45) {
        insert();
      } else if (step_kind < 60) {
        if (!armed_.empty())
          remove(
              *std::next(armed_.begin(), static_cast<std::ptrdiff_t>(pick(armed_.size())))->second);
      } else {
        advance();
      }
      check_next();
    }
  }
  void finish() {
    while (!armed_.empty() && !::testing::Test::HasFatalFailure())
      advance_to(time_of(armed_.rbegin()->first));
    EXPECT_TRUE(wheel_.empty());
  }
  std::size_t fired = 0, removed_armed = 0, removed_due = 0;

 private:
  static std::int64_t time_of(std::int64_t at) { return at > last_tick ? INT64_MAX : at * tick; }
  std::size_t pick(std::size_t below) {
    return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_);
  }
  // Gives spans of each order of magnitude equally often.
  std::int64_t span(std::int64_t most) {
    const double exponent =
        std::uniform_real_distribution<double>(0, std::log2(static_cast<double>(most)))(random_);
    return static_cast<std::int64_t>(std::exp2(exponent)) - 1;
  }

  void insert() {
    if (idle_.empty()) return;
    std::swap(idle_[pick(idle_.size())], idle_.back());
    alarm& idle = *idle_.back();
    idle_.pop_back();
    std::int64_t due_ns = now_ns_ + span(400 * day);
    // Moves some of them to a border, which may lie in the past.
    if (pick(4) == 0) due_ns -= due_ns % (tick << (slot_bits * pick(5)));
    arm(wheel_, idle, due_ns);
    armed_.emplace(idle.due_tick, &idle);
  }

  void remove(alarm& removed) {
    ++(removed.is == timer::state::due ? removed_due : removed_armed);
    wheel_.remove(removed);
    forget(removed);
  }

  void forget(alarm& forgotten) {
    auto [at, end] = armed_.equal_range(forgotten.due_tick);
    at = std::find_if(at, end, [&](const auto& entry) { return entry.second == &forgotten; });
    ASSERT_NE(at, end);
    armed_.erase(at);
    idle_.push_back(&forgotten);
  }

  void advance() {
    const auto how = pick(10);
    if (how == 0) return advance_to(now_ns_ + span(2 * day));
    if (how < 3 || armed_.empty()) return advance_to(now_ns_ + span(10 * second));
    // Advances to the next visit, to the first timer that is due, or to the moment before it; in
    // small steps when that is far.
    const std::int64_t first = time_of(armed_.begin()->first);
    const std::int64_t to = how < 6 ? time_of(wheel_.next_tick()) : how < 8 ? first : first - 1;
    advance_to(std::clamp(to, now_ns_, now_ns_ + span(day)));
  }

  void advance_to(std::int64_t ns) {
    now_ns_ = ns;
    wheel_.advance(now_ns_ / tick);
    if (pick(4) == 0 && !armed_.empty()) remove(*armed_.begin()->second);
    while (timer* taken = wheel_.take_due()) {
      alarm& due_alarm = static_cast<alarm&>(*taken);
      ASSERT_LE(due_alarm.due_ns, now_ns_) << "T1: early";
      ++fired;
      forget(due_alarm);
    }
    if (armed_.empty()) return;
    ASSERT_GT(armed_.begin()->first, now_ns_ / tick) << "T1: late";
  }

  void check_next() {
    ASSERT_EQ(wheel_.empty(), armed_.empty());
    const std::int64_t next = wheel_.next_tick();
    if (armed_.empty()) {
      ASSERT_EQ(next, wheel::never);
      return;
    }
    ASSERT_LE(next, std::max(armed_.begin()->first, now_ns_ / tick)) << "T2";
    // The wheel asks for a visit at the present only if a timer is due.
    if (armed_.begin()->first <= now_ns_ / tick) return;
    ASSERT_GT(next, now_ns_ / tick);
  }

  std::mt19937_64 random_;
  wheel wheel_;
  std::int64_t now_ns_ = 0;
  std::vector<alarm> all_ = std::vector<alarm>(1000);
  std::vector<alarm*> idle_;
  std::multimap<std::int64_t, alarm*> armed_;
};

TEST(wheel, four_hundred_days_are_as_a_sorted_list_keeps_them) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    SCOPED_TRACE(seed);
    both play(seed);
    play.play_until(400 * day);
    play.finish();
    EXPECT_GT(play.fired, 1000u);
    EXPECT_GT(play.removed_armed, 1000u);
    EXPECT_GT(play.removed_due, 100u);
  }
}

// A thread that sleeps until next_tick() wakes a few times for each timer, however far away the
// timer is, and does not wake for empty slots.
TEST(wheel, the_visits_are_bounded_by_the_timers_and_not_by_the_time) {
  wheel clock;
  std::vector<std::unique_ptr<alarm>> all;
  std::mt19937_64 random(7);
  for (int i = 0; i < 1000; ++i) {
    all.push_back(std::make_unique<alarm>());
    arm(clock, *all.back(),
        std::uniform_int_distribution<std::int64_t>(0, INT64_MAX - tick)(random));
  }
  std::size_t visits = 0, fired = 0;
  std::int64_t before = -1;
  for (std::int64_t next; (next = clock.next_tick()) != wheel::never; ++visits) {
    ASSERT_GT(next, before);
    before = next;
    clock.advance(next);
    while (clock.take_due() != nullptr) ++fired;
  }
  EXPECT_EQ(fired, all.size());
  EXPECT_LE(visits, all.size() * levels);
}

// Between two pieces of a walk time passes, timers are taken, and timers are armed.
TEST(wheel, a_walk_in_pieces_finds_each_timer_that_stays) {
  constexpr std::size_t piece = 16;
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u, 5u}) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    wheel clock;
    std::vector<std::unique_ptr<alarm>> all;
    const auto arm_one = [&](std::int64_t now_ns) {
      all.push_back(std::make_unique<alarm>());
      // spread over all levels, many of them near
      const auto bits = std::uniform_int_distribution<unsigned>(10, 50)(random);
      arm(clock, *all.back(), now_ns + static_cast<std::int64_t>(random() >> (64 - bits)));
    };
    std::int64_t now_ns = 0;
    for (int i = 0; i < 2000; ++i) arm_one(now_ns);
    std::map<const timer*, int> found;
    std::size_t steps = 0, in_piece = 0;
    clock.begin_walk();
    while (clock.walk(piece, [&](const timer& walked) {
      ++found[&walked];
      EXPECT_TRUE(walked.is == timer::state::armed || walked.is == timer::state::due);
      ++in_piece;
    })) {
      ASSERT_LE(std::exchange(in_piece, 0), piece);
      if (++steps % 3 == 0) {
        now_ns += static_cast<std::int64_t>(random() >> (64 - 32 - steps % 12));
        clock.advance(now_ns / tick);
      }
      if (steps % 5 == 0) clock.take_due();
      for (int i = 0; i < 3; ++i) {
        alarm& chosen = *all[random() % all.size()];
        if (chosen.is == timer::state::armed || chosen.is == timer::state::due)
          clock.remove(chosen);
      }
      if (steps < 100) arm_one(now_ns);
    }
    std::size_t stayed = 0;
    for (std::size_t i = 0; i < 2000; ++i) {
      const timer::state is = all[i]->is;
      if (is != timer::state::armed && is != timer::state::due) continue;
      ++stayed;
      EXPECT_TRUE(found.contains(all[i].get())) << i;
    }
    EXPECT_GT(stayed, 100u);
    EXPECT_GT(steps, 100u);
  }
}

TEST(wheel, a_walk_goes_on_though_the_timer_at_which_it_pauses_is_removed) {
  wheel clock;
  std::vector<alarm> all(100);
  for (alarm& armed : all) arm(clock, armed, 70 * tick);  // in one slot
  std::size_t found = 0, removed = 0;
  timer* next = nullptr;
  clock.begin_walk();
  while (clock.walk(1, [&](timer& walked) {
    EXPECT_EQ(walked.is, timer::state::armed);
    ++found;
    next = timer_list::next(walked);
  })) {
    if (next == nullptr) continue;
    clock.remove(*next);
    ++removed;
  }
  EXPECT_EQ(found, 50u);
  EXPECT_EQ(removed, 50u);
}

// Timers lie in a slot of the second level, at which the walk pauses, and in the slot of the first
// level to which they move.
TEST(wheel, a_walk_that_pauses_in_a_slot_which_moves_finds_only_what_has_moved_twice) {
  wheel clock;
  std::vector<alarm> moves(100), stays(100);
  clock.advance(60);
  for (alarm& armed : moves) arm(clock, armed, 70 * tick);
  std::map<const timer*, int> found;
  clock.begin_walk();
  EXPECT_TRUE(clock.walk(50, [&](const timer& walked) { ++found[&walked]; }));
  clock.advance(64);
  for (alarm& armed : stays) arm(clock, armed, 70 * tick);
  while (clock.walk(50, [&](const timer& walked) { ++found[&walked]; })) {
  }
  EXPECT_EQ(found.size(), 200u);
  for (const alarm& stayed : stays) EXPECT_EQ(found[&stayed], 1);
  int looks = 0;
  for (const auto& [walked, count] : found) looks += count;
  EXPECT_EQ(looks, 250);
}

}  // namespace
}  // namespace troupe::tasks
