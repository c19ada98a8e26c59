// guess: thinks of a number, and says whether your guesses are too low or too high.
//
//     ./run examples/guess.cpp --most 1000
//
// The Console lives on the main thread, where it may wait for a line as long as the player thinks;
// the pool works meanwhile. It asks the Thinker, an actor of the pool, about each guess. The game
// is one coroutine, which returns when the number is found or the input ends; then there is no work
// left.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iostream>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/troupe.hpp"

constexpr int most_max = 1'000'000'000;

enum class Hint { higher, lower, found };

class Thinker {
 public:
  Thinker(int most, std::uint64_t seed)
      : secret_(1 + static_cast<int>(std::mt19937_64(seed)() % static_cast<unsigned>(most))) {}

  Hint compare(int guess) const {
    return guess < secret_ ? Hint::higher : guess > secret_ ? Hint::lower : Hint::found;
  }
  int give_away() const { return secret_; }

 private:
  const int secret_;
};

// Returns the number in this text, which may have blanks around it; nothing if it is not a number.
std::optional<int> to_number(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  text = text.substr(0, text.find_last_not_of(blanks) + 1);
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, bad] = std::from_chars(text.data(), end, number);
  if (bad != std::errc{} || rest != end) return std::nullopt;
  return number;
}

class Console {
 public:
  Console(troupe::ref<Thinker> thinker, int most) : thinker_(std::move(thinker)), most_(most) {}

  troupe::task<> play() {
    std::cout << "I think of a number from 1 to " << most_ << ". Which is it?\n";
    for (int tries = 1;; ++tries) {
      const std::optional<int> guess = read_guess(tries);
      if (!guess) break;
      const Hint hint = co_await thinker_.ask<&Thinker::compare>(*guess);
      if (hint == Hint::found) {
        std::cout << "Yes, it is " << *guess << "! You needed " << tries
                  << (tries == 1 ? " try.\n" : " tries.\n");
        co_return;
      }
      std::cout << (hint == Hint::higher ? "It is higher.\n" : "It is lower.\n");
    }
    const int secret = co_await thinker_.ask<&Thinker::give_away>();
    std::cout << "\nIt was " << secret << ". Good-bye!\n";
  }

 private:
  // Asks until it gets a number that is possible. Returns nothing at the end of the input.
  std::optional<int> read_guess(int tries) const {
    std::string line;
    while (std::cout << "Guess " << tries << ": " << std::flush && std::getline(std::cin, line)) {
      const std::optional<int> guess = to_number(line);
      if (guess && *guess >= 1 && *guess <= most_) return guess;
      std::cout << "Please type a whole number from 1 to " << most_ << ".\n";
    }
    return std::nullopt;
  }

  troupe::ref<Thinker> thinker_;
  const int most_;
};

constexpr const char* usage =
    "usage: guess [--most N] [--seed S]\n"
    "  --most N  the greatest number there may be, 1 to 1000000000 (default 100)\n"
    "  --seed S  from 0 to 1000000000; the same one always means the same number (default: by "
    "chance)\n"
    "Reads a guess from each line of the input; its end ends the game.\n";

struct Options {
  int most = 100;
  std::uint64_t seed = std::random_device{}();
};

// The arguments are wrong.
struct WrongUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Options parse(int argc, char** argv) {
  Options chosen;
  std::set<std::string> given;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const int least = word == "--most" ? 1 : 0;
    if (word != "--most" && word != "--seed") throw WrongUse("there is no option '" + word + "'");
    if (!given.insert(word).second) throw WrongUse("'" + word + "' is one too many");
    const std::optional<int> number = ++i < argc ? to_number(argv[i]) : std::nullopt;
    if (!number || *number < least || *number > most_max) {
      throw WrongUse(word + " wants a number from " + std::to_string(least) + " to " +
                     std::to_string(most_max));
    }
    if (word == "--most") chosen.most = *number;
    if (word == "--seed") chosen.seed = static_cast<std::uint64_t>(*number);
  }
  return chosen;
}

int main(int argc, char** argv) try {
  if (std::find(argv + 1, argv + argc, std::string_view("--help")) != argv + argc) {
    std::cout << usage;
    return 0;
  }
  const Options options = parse(argc, argv);
  troupe::runtime rt;
  const auto thinker = rt.spawn<Thinker>(options.most, options.seed);
  rt.spawn<Console>(troupe::on_main(), thinker, options.most).tell<&Console::play>();
  rt.run();  // returns when the game is over
  return 0;
} catch (const WrongUse& wrong) {
  std::cerr << usage << "guess: " << wrong.what() << '\n';
  return 2;
} catch (const std::exception& failure) {
  std::cerr << "guess: " << failure.what() << '\n';
  return 1;
}
