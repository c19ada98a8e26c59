// philosophers: dine at a round table with too few forks, and none of them starves.
//
//     ./run examples/philosophers.cpp --philosophers 5 --meals 100
//
// Between any two philosophers lies one fork, and each needs both of theirs to eat. Philosophers
// and Forks are actors. A Philosopher's evening is one coroutine, which holds no thread while it
// waits for a fork.
//
// No philosopher waits without end. Each takes the fork with the smaller number first. So the
// philosopher with the highest fork that is taken never waits for another one: that philosopher
// eats, and puts both forks down. Then the same holds for the others. And a Fork goes to the
// philosopher who has waited longest for it.
//
// With --left-first each philosopher takes the left fork first. Soon all of them have that one and
// wait for the right one. The program is then out of work with suspended turns, and run() throws an
// error that says what waits for what.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <deque>
#include <iomanip>
#include <iostream>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/troupe.hpp"

constexpr int philosophers_max = 1'000, meals_max = 1'000'000;
// Thinking, reaching for a fork and eating take less than this.
constexpr unsigned moment_max_us = 100;

class Fork {
 public:
  // The future is ready when the asker has the fork. The Fork itself does not wait: a message tells
  // it when the fork is put down.
  troupe::future<> take() {
    troupe::promise<> turn;
    troupe::future<> later = turn.get_future();
    if (waiting_.empty() && !taken_) {
      hand_to(std::move(turn));
    } else {
      waiting_.push_back(std::move(turn));
    }
    return later;
  }

  void put_down() {
    taken_ = false;
    if (waiting_.empty()) return;
    hand_to(std::move(waiting_.front()));
    waiting_.pop_front();
  }

  int uses() const { return uses_; }

 private:
  void hand_to(troupe::promise<> turn) {
    taken_ = true;
    ++uses_;
    turn.set_value();
  }

  bool taken_ = false;
  int uses_ = 0;
  std::deque<troupe::promise<>> waiting_;
};

struct Evening {
  int meals = 0;
  std::chrono::nanoseconds longest_wait{};
};

class Philosopher {
 public:
  Philosopher(const troupe::runtime& rt, troupe::ref<Fork> first, troupe::ref<Fork> second,
              unsigned seed)
      : rt_(rt), first_(std::move(first)), second_(std::move(second)), random_(seed) {}

  troupe::task<Evening> dine(int meals) {
    Evening had;
    while (had.meals < meals) {
      co_await troupe::sleep_for(moment());  // thinks
      const auto hungry = rt_.now();
      co_await first_.ask<&Fork::take>();
      co_await troupe::sleep_for(moment());  // reaches for the other fork
      co_await second_.ask<&Fork::take>();
      had.longest_wait = std::max(had.longest_wait, rt_.now() - hungry);
      co_await troupe::sleep_for(moment());  // eats
      ++had.meals;
      first_.tell<&Fork::put_down>();
      second_.tell<&Fork::put_down>();
    }
    co_return had;
  }

 private:
  std::chrono::microseconds moment() {
    return std::chrono::microseconds(random_() % moment_max_us);
  }

  const troupe::runtime& rt_;
  troupe::ref<Fork> first_, second_;
  std::mt19937 random_;
};

struct Options {
  int philosophers = 5, meals = 100;
  bool left_first = false;
};

void dine(const Options& options) {
  troupe::runtime rt;
  const auto count = static_cast<std::size_t>(options.philosophers);
  std::vector<troupe::ref<Fork>> forks;
  for (std::size_t i = 0; i < count; ++i) forks.push_back(rt.spawn<Fork>());

  std::vector<troupe::future<Evening>> evenings;
  for (std::size_t left = 0; left < count; ++left) {
    const std::size_t right = (left + 1) % count;
    const auto [first, second] =
        options.left_first ? std::pair(left, right) : std::minmax({left, right});
    const auto one =
        rt.spawn<Philosopher>(rt, forks[first], forks[second], static_cast<unsigned>(left));
    evenings.push_back(one.ask<&Philosopher::dine>(options.meals));
  }
  rt.run();  // returns when all have eaten

  std::cout << "philosopher     meals  longest wait\n" << std::fixed << std::setprecision(3);
  for (std::size_t i = 0; i < count; ++i) {
    const auto [meals, longest] = evenings[i].get();
    std::cout << std::setw(11) << i + 1 << std::setw(10) << meals << std::setw(11)
              << std::chrono::duration<double, std::milli>(longest).count() << " ms\n";
  }

  std::vector<troupe::future<int>> uses;
  for (const auto& fork : forks) uses.push_back(fork.ask<&Fork::uses>());
  rt.run();
  for (auto& one : uses) {
    if (one.get() != 2 * options.meals)
      throw std::logic_error("a fork was not used once for each meal");
  }
  std::cout << "each fork was used " << 2 * options.meals << " times\n";
}

constexpr const char* usage =
    "usage: philosophers [--philosophers N] [--meals M] [--left-first]\n"
    "  --philosophers N  how many dine, 2 to 1000 (default 5)\n"
    "  --meals M         how often each of them eats, 1 to 1000000 (default 100)\n"
    "  --left-first      shows the deadlock: all take the left fork first\n"
    "Ends with 0; with 1 after a deadlock.\n";

// The arguments are wrong.
struct WrongUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int read_number(std::string_view text, int least, int most) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, bad] = std::from_chars(text.data(), end, number);
  if (bad == std::errc{} && rest == end && number >= least && number <= most) return number;
  throw WrongUse("'" + std::string(text) + "' is no number from " + std::to_string(least) + " to " +
                 std::to_string(most));
}

Options parse(int argc, char** argv) {
  Options chosen;
  std::set<std::string> given;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!given.insert(word).second) throw WrongUse("'" + word + "' is one too many");
    if (word == "--left-first") {
      chosen.left_first = true;
    } else if (word != "--philosophers" && word != "--meals") {
      throw WrongUse("there is no option '" + word + "'");
    } else if (++i == argc) {
      throw WrongUse(word + " wants a number");
    } else if (word == "--meals") {
      chosen.meals = read_number(argv[i], 1, meals_max);
    } else {
      chosen.philosophers = read_number(argv[i], 2, philosophers_max);
    }
  }
  return chosen;
}

int main(int argc, char** argv) try {
  if (std::find(argv + 1, argv + argc, std::string_view("--help")) != argv + argc) {
    std::cout << usage;
    return 0;
  }
  dine(parse(argc, argv));
  return 0;
} catch (const WrongUse& wrong) {
  std::cerr << usage << "philosophers: " << wrong.what() << '\n';
  return 2;
} catch (const std::exception& failure) {
  std::cerr << "philosophers: " << failure.what() << '\n';
  return 1;
}
