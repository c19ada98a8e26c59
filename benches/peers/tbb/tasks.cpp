// The rows task/* with oneTBB: a task_group for each fork, as its documentation does.
// ../../README.md says what each measures.
#include <array>
#include <atomic>
#include <cstdint>

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include "../../measure.hpp"
#include "../../task_work.hpp"

namespace {

using namespace task_work;

void nap(std::atomic<unsigned>& begun) {
  ++begun;
  measure::sleep_ms(ramp_nap_ms);
}

template <class Function>
void with_workers(unsigned workers, const Function& function) {
  const tbb::global_control stacks(tbb::global_control::thread_stack_size, 8 << 20);
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, workers);
  tbb::task_arena arena(static_cast<int>(workers));
  arena.execute(function);
}

std::uint64_t fib_in(std::uint64_t n) {
  if (n < 2) return n;
  std::uint64_t one = 0;
  tbb::task_group group;
  group.run([&] { one = fib_in(n - 1); });
  const std::uint64_t two = fib_in(n - 2);
  group.wait();
  return one + two;
}
measure::result fib(unsigned workers, std::uint64_t n) {
  measure::result made;
  with_workers(workers, [&] {
    const measure::stopwatch watch;
    made.check = fib_in(n);
    made.value = watch.ns_per(fib_calls(n));
  });
  return made;
}

std::uint64_t queens_in(const board& on, unsigned row, unsigned n, unsigned cut) {
  if (row == cut) return queens_alone(on, row, n);
  std::array<std::uint64_t, queens_max> parts{};
  tbb::task_group group;
  for (unsigned column = 0; column < n; ++column) {
    if (!queen_fits(on, row, column)) continue;
    group.run(
        [&, column] { parts[column] = queens_in(with_queen(on, row, column), row + 1, n, cut); });
  }
  group.wait();
  std::uint64_t sum = 0;
  for (const std::uint64_t part : parts) sum += part;
  return sum;
}
measure::result queens(unsigned workers, unsigned n, unsigned cut) {
  measure::result made;
  with_workers(workers, [&] {
    const std::int64_t began = measure::now_ns();
    made.check = queens_in({}, 0, n, cut);
    made.value = ms_of(began);
  });
  return made;
}
measure::result nqueens(unsigned workers, std::uint64_t n) {
  return queens(workers, static_cast<unsigned>(n), static_cast<unsigned>(n));
}
measure::result nqueens_cut(unsigned workers, std::uint64_t n) {
  return queens(workers, static_cast<unsigned>(n), queens_cut_row);
}

std::uint64_t skynet_in(std::uint64_t number, std::uint64_t leaves) {
  if (leaves == 1) return number;
  std::array<std::uint64_t, skynet_ways> parts{};
  tbb::task_group group;
  for (std::uint64_t i = 0; i < skynet_ways; ++i) {
    group.run([&, i] {
      parts[i] = skynet_in(number + i * (leaves / skynet_ways), leaves / skynet_ways);
    });
  }
  group.wait();
  std::uint64_t sum = 0;
  for (const std::uint64_t part : parts) sum += part;
  return sum;
}
measure::result skynet(unsigned workers, std::uint64_t leaves) {
  measure::result made;
  with_workers(workers, [&] {
    const measure::stopwatch watch;
    made.check = skynet_in(0, leaves);
    made.value = watch.ns_per(leaves);
  });
  return made;
}

measure::result loop(unsigned workers, std::uint64_t count) {
  std::vector<float> all = make_floats(count);
  measure::result made;
  with_workers(workers, [&] {
    const std::int64_t began = measure::now_ns();
    for (int round = 0; round < loop_rounds; ++round) {
      tbb::parallel_for(tbb::blocked_range<std::size_t>(0, all.size()),
                        [&](const tbb::blocked_range<std::size_t>& part) {
                          for (std::size_t i = part.begin(); i != part.end(); ++i)
                            shade_in_place(all[i]);
                        });
    }
    made.value = ms_of(began) / loop_rounds;
  });
  made.check = count_right(all, loop_rounds);
  return made;
}

// As many parts as workers, each of which sleeps for 20 ms.
void ramp_span(std::atomic<unsigned>& begun, unsigned count) {
  tbb::task_group group;
  for (unsigned i = 0; i < count; ++i) group.run([&] { nap(begun); });
  group.wait();
}
void ramp_halves(std::atomic<unsigned>& begun, unsigned count) {
  if (count == 1) return nap(begun);
  tbb::task_group group;
  group.run([&] { ramp_halves(begun, count / 2); });
  ramp_halves(begun, count - count / 2);
  group.wait();
}
void ramp_for(std::atomic<unsigned>& begun, unsigned count) {
  tbb::parallel_for(
      0u, count, [&](unsigned) { nap(begun); }, tbb::simple_partitioner());
}
template <void (*Round)(std::atomic<unsigned>&, unsigned)>
measure::result ramp(unsigned workers, std::uint64_t rounds) {
  measure::result made;
  with_workers(workers, [&] {
    for (std::uint64_t i = 0; i < rounds; ++i) {
      std::atomic<unsigned> begun{0};
      measure::sleep_ms(20);
      const std::int64_t began = measure::now_ns();
      Round(begun, workers);
      made.value += ms_of(began) / static_cast<double>(rounds);
      if (begun == workers) ++made.check;
    }
  });
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr measure::entry table[] = {{"fib", 34, fib},
                                             {"fib_lazy", 30, fib},
                                             {"nqueens", 13, nqueens},
                                             {"nqueens_fork", 13, nqueens},
                                             {"nqueens_cut", 13, nqueens_cut},
                                             {"skynet", 1'000'000, skynet},
                                             {"for", 10'000'000, loop},
                                             {"ramp", 5, ramp<ramp_span>},
                                             {"ramp_halves", 5, ramp<ramp_halves>},
                                             {"ramp_for", 5, ramp<ramp_for>}};
  measure::run_program(argc, argv, table);
}
