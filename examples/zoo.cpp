// zoo: a program to look into while it runs. Three of its 100,000 animals make trouble.
//
//     ./run examples/zoo.cpp --seconds 60
//     troupe page PID      # and, elsewhere: troupe top PID
//
// Each animal is an actor, and keepers feed some of them all the time. Among them hide:
//   - a sloth, whose handler blocks its thread for 20 ms each time;
//   - a snake, which digests so slowly that its mailbox grows;
//   - a parrot and a mynah, which ask each other without end. Both are reentrant, so this is no
//     deadlock: each answers once the other has answered, and one more call waits each time.
//
// It runs until SIGINT or SIGTERM comes, or for the given time, and prints how often it has fed.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "troupe/troupe.hpp"

using namespace std::chrono_literals;

constexpr int animals_min = 100, animals_max = 10'000'000, seconds_max = 1'000'000;
constexpr auto feeding_time = 10ms;   // between two rounds of a keeper
constexpr int fed_at_once = 20;       // animals of one round
constexpr auto climbing_time = 20ms;  // the thread can do nothing else meanwhile
constexpr auto digestion_time = 1s;   // of one mouse; the snake gets one with each feeding
constexpr auto breath = 20ms;         // before a bird asks

// The harmless ones: what each of them does takes well below a microsecond.
struct Ant {
  std::int64_t eaten = 0;
  void eat(int crumbs) { eaten += crumbs; }
};
struct Fish {
  std::int64_t eaten = 0;
  void eat(int flakes) { eaten += flakes; }
};

struct Sloth {
  void climb() {
    const troupe::trace_span span("hang");
    // sleeps: it stands for a call that blocks, which a handler should leave to troupe::blocking
    std::this_thread::sleep_for(climbing_time);
  }
};

struct Snake {
  int swallowed = 0;
  troupe::task<> swallow(int mice) {
    co_await troupe::sleep_for(digestion_time);  // holds no thread, but the snake's other mail
    swallowed += mice;
  }
};

struct Mynah;
struct Parrot {
  static constexpr bool reentrant = true;
  troupe::ref<Mynah> other;
  void meet(troupe::ref<Mynah> one) { other = std::move(one); }
  troupe::task<int> repeat(int words);
};
struct Mynah {
  static constexpr bool reentrant = true;
  troupe::ref<Parrot> other;
  troupe::task<int> repeat(int words) {
    co_await troupe::sleep_for(breath);
    co_return co_await other.ask<&Parrot::repeat>(words);
  }
};
troupe::task<int> Parrot::repeat(int words) {
  co_await troupe::sleep_for(breath);
  co_return co_await other.ask<&Mynah::repeat>(words);
}

// Feeds some animals of one class in each round.
template <class Animal>
class Keeper {
 public:
  Keeper(std::size_t count, unsigned seed) : random_(seed) {
    animals_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) animals_.push_back(troupe::spawn<Animal>());
  }
  void feed() {
    for (int i = 0; i < fed_at_once; ++i)
      animals_[random_() % animals_.size()].template tell<&Animal::eat>(1);
    fed_ += fed_at_once;
  }
  std::int64_t fed() const { return fed_; }

 private:
  std::vector<troupe::ref<Animal>> animals_;
  std::mt19937 random_;
  std::int64_t fed_ = 0;
};

// Closes the zoo once, whether a signal came or the time is over.
class Gate {
 public:
  Gate(troupe::runtime& rt, troupe::ref<Keeper<Ant>> ants, troupe::ref<Keeper<Fish>> fish)
      : rt_(rt), ants_(std::move(ants)), fish_(std::move(fish)) {}
  troupe::task<> close() {
    const std::int64_t ants = co_await ants_.ask<&Keeper<Ant>::fed>();
    const std::int64_t fish = co_await fish_.ask<&Keeper<Fish>::fed>();
    std::cout << "fed " << ants << " ants and " << fish << " fish" << std::endl;
    rt_.stop();  // the birds would never end
  }

 private:
  troupe::runtime& rt_;
  troupe::ref<Keeper<Ant>> ants_;
  troupe::ref<Keeper<Fish>> fish_;
};

troupe::task<> close_by_signal(troupe::ref<Gate> gate) {
  auto signals = troupe::signal_listener::listen({SIGINT, SIGTERM});
  std::cout << "the zoo is open; look into it with: troupe page " << ::getpid() << std::endl;
  co_await signals.next();
  gate.tell<&Gate::close>();
}

struct Options {
  int animals = 100'000;
  int seconds = 0;  // 0: until a signal comes
};

void open_zoo(const Options& chosen) {
  troupe::runtime_options options;
  options.observe = true;
  troupe::runtime rt(options);
  const auto half = static_cast<std::size_t>(chosen.animals) / 2;
  const auto ants = rt.spawn<Keeper<Ant>>(half, 1U);
  const auto fish = rt.spawn<Keeper<Fish>>(half, 2U);
  const auto sloth = rt.spawn<Sloth>();
  const auto snake = rt.spawn<Snake>();
  const auto parrot = rt.spawn<Parrot>();
  parrot.tell<&Parrot::meet>(rt.spawn<Mynah>(parrot));
  parrot.tell<&Parrot::repeat>(2);
  auto feeding = rt.every(feeding_time, [=] {
    ants.tell<&Keeper<Ant>::feed>();
    fish.tell<&Keeper<Fish>::feed>();
    snake.tell<&Snake::swallow>(1);
  });
  auto climbing = rt.every(2 * climbing_time, [=] { sloth.tell<&Sloth::climb>(); });
  const auto gate = rt.spawn<Gate>(rt, ants, fish);
  rt.spawn(close_by_signal(gate));
  if (chosen.seconds != 0)
    rt.after(std::chrono::seconds(chosen.seconds), [=] { gate.tell<&Gate::close>(); });
  rt.run();
}

constexpr const char* usage =
    "usage: zoo [--seconds S] [--animals N]\n"
    "  --seconds S  how long it is open, 1 to 1000000 (default: until SIGINT or SIGTERM comes)\n"
    "  --animals N  how many ants and fish live there, 100 to 10000000 (default 100000)\n";

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
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word != "--seconds" && word != "--animals")
      throw WrongUse("there is no option '" + std::string(word) + "'");
    if (++i == argc) throw WrongUse(std::string(word) + " wants a number");
    if (word == "--seconds") {
      chosen.seconds = read_number(argv[i], 1, seconds_max);
    } else {
      chosen.animals = read_number(argv[i], animals_min, animals_max);
    }
  }
  return chosen;
}

int main(int argc, char** argv) try {
  if (std::find(argv + 1, argv + argc, std::string_view("--help")) != argv + argc) {
    std::cout << usage;
    return 0;
  }
  open_zoo(parse(argc, argv));
  return 0;
} catch (const WrongUse& wrong) {
  std::cerr << usage << "zoo: " << wrong.what() << '\n';
  return 2;
} catch (const std::exception& failure) {
  std::cerr << "zoo: " << failure.what() << '\n';
  return 1;
}
