// task_work: what the rows task/* compute, the same for all contestants. C++17.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "measure.hpp"

namespace task_work {

inline std::uint64_t fib_calls(std::uint64_t n) {
  std::uint64_t before = 1, calls = 1;
  for (std::uint64_t i = 2; i <= n; ++i) {
    const std::uint64_t next = before + calls + 1;
    before = calls;
    calls = next;
  }
  return calls;
}

constexpr int ramp_nap_ms = 20;
constexpr unsigned queens_max = 16;
// The positions of the queens of the first rows.
struct board {
  std::array<std::int8_t, queens_max> column{};
};

inline bool queen_fits(const board& on, unsigned row, unsigned column) {
  for (unsigned i = 0; i < row; ++i) {
    const int other = on.column[i], apart = static_cast<int>(row - i),
              here = static_cast<int>(column);
    if (other == here || other == here - apart || other == here + apart) return false;
  }
  return true;
}
inline board with_queen(board on, unsigned row, unsigned column) {
  on.column[row] = static_cast<std::int8_t>(column);
  return on;
}

inline std::uint64_t queens_alone(const board& on, unsigned row, unsigned n) {
  if (row == n) return 1;
  std::uint64_t sum = 0;
  for (unsigned column = 0; column < n; ++column) {
    if (queen_fits(on, row, column)) sum += queens_alone(with_queen(on, row, column), row + 1, n);
  }
  return sum;
}

// task/nqueens_cut: plain calls from this row on.
constexpr unsigned queens_cut_row = 3;

inline double ms_of(std::int64_t began_ns) {
  return static_cast<double>(measure::now_ns() - began_ns) / 1e6;
}

// The loop of task/for.
inline float shade(float x) { return x * 0.5f + x * x * 0.25f + 1.0f; }
constexpr std::uint64_t different_floats = 1000;
inline std::vector<float> make_floats(std::uint64_t count) {
  std::vector<float> all(count);
  for (std::uint64_t i = 0; i < count; ++i) all[i] = static_cast<float>(i % different_floats);
  return all;
}
// Returns how many elements have the value that the rounds of the loop should have left.
inline std::uint64_t count_right(const std::vector<float>& all, int rounds) {
  std::vector<float> expected = make_floats(different_floats);
  for (float& one : expected) {
    for (int round = 0; round < rounds; ++round) one = shade(one) * 1e-3f;
  }
  std::uint64_t right = 0;
  for (std::uint64_t i = 0; i < all.size(); ++i)
    right += all[i] == expected[i % different_floats] ? 1 : 0;
  return right;
}
inline void shade_in_place(float& x) { x = shade(x) * 1e-3f; }
// Takes 0.2 s, so that the time of waking threads for the first round does not count.
constexpr int loop_rounds = 200;

constexpr std::uint64_t skynet_ways = 10;

}  // namespace task_work
