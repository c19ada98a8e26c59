// nqueens: counts the ways to place N queens on an N×N board so that none attacks another.
//
//     ./run examples/nqueens.cpp 12
//
// Each node of the search is a work that forks into the nodes below it, and idle workers take some
// of them. In the last --alone rows a fork would cost more than the node, so plain calls search
// these.
#include <charconv>
#include <cstdint>
#include <exception>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "troupe/troupe.hpp"

namespace {

constexpr unsigned queens_max = 20, alone_by_default = 6;

// The places of the next row that are attacked: a bit for each column.
struct attacked {
  std::uint32_t columns = 0, rising = 0, falling = 0;

  std::uint32_t any() const { return columns | rising | falling; }
  attacked with(std::uint32_t queen) const {
    return {columns | queen, (rising | queen) << 1, (falling | queen) >> 1};
  }
};

struct board {
  unsigned rows_left;
  std::uint32_t all;  // one bit for each column
  attacked by;

  template <class Function>
  void for_each_free(const Function& function) const {
    for (std::uint32_t free = all & ~by.any(); free != 0; free &= free - 1) {
      function(board{rows_left - 1, all, by.with(free & -free)});
    }
  }
};

std::uint64_t count_alone(const board& on) {
  if (on.rows_left == 0) return 1;
  std::uint64_t ways = 0;
  on.for_each_free([&](const board& next) { ways += count_alone(next); });
  return ways;
}

troupe::work<std::uint64_t> count(board on, unsigned alone) {
  if (on.rows_left <= alone) co_return count_alone(on);
  std::vector<troupe::work<std::uint64_t>> parts;
  on.for_each_free([&](const board& next) { parts.push_back(count(next, alone)); });
  co_await troupe::fork(std::span(parts));
  std::uint64_t ways = 0;
  for (auto& part : parts) ways += part.take();
  co_return ways;
}

int usage() {
  std::cerr << "usage: nqueens N [--alone ROWS]\n  N: 1 to " << queens_max
            << "\n  ROWS: the last rows, searched without forks (" << alone_by_default << ")\n";
  return 2;
}

bool read_number(std::string_view text, unsigned& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  unsigned n = 8, alone = alone_by_default;
  if (words.size() == 2 || words.size() > 3) return usage();
  if (!words.empty() && (!read_number(words[0], n) || n < 1 || n > queens_max)) return usage();
  if (words.size() == 3 && (words[1] != "--alone" || !read_number(words[2], alone))) return usage();

  const troupe::runtime rt;
  std::cout << n << " queens: " << count({n, (std::uint32_t{1} << n) - 1, {}}, alone).get()
            << " ways\n"
            << std::flush;
  if (!std::cout) throw std::runtime_error("standard output cannot be written");
  return 0;
} catch (const std::exception& failure) {
  std::cerr << "nqueens: " << failure.what() << '\n';
  return 1;
}
