// tasks: our contestant for the rows task/*. README.md says what each measures.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "measure.hpp"
#include "task_work.hpp"
#include "troupe/ramp.hpp"
#include "troupe/troupe.hpp"

namespace {

using namespace task_work;
using troupe::work;

// Runs on the pool, so that WORKERS threads compute, and no other.
template <class T>
T on_pool(unsigned workers, work<T> wanted, double& ms) {
  troupe::runtime rt({.workers = workers});
  auto wants = [](work<T> given, double& took) -> troupe::task<T> {
    const std::int64_t began = measure::now_ns();
    T value = co_await std::move(given);
    took = ms_of(began);
    co_return value;
  };
  auto result = rt.spawn(wants(std::move(wanted), ms));
  rt.run();
  return result.get();
}

work<std::uint64_t> fib_work(std::uint64_t n) {
  if (n < 2) co_return n;
  auto [one, two] = co_await troupe::fork(fib_work(n - 1), fib_work(n - 2));
  co_return one + two;
}
measure::result fib(unsigned workers, std::uint64_t n) {
  double ms = 0;
  const std::uint64_t value = on_pool(workers, fib_work(n), ms);
  return {ms * 1e6 / static_cast<double>(fib_calls(n)), value};
}

std::uint64_t fib_by_lazies(std::uint64_t n) {
  if (n < 2) return n;
  const troupe::lazy one([n] { return fib_by_lazies(n - 1); });
  const std::uint64_t two = fib_by_lazies(n - 2);
  return one.get() + two;
}
measure::result fib_lazy(unsigned workers, std::uint64_t n) {
  troupe::runtime rt({.workers = workers});
  std::atomic<std::uint64_t> value{0};
  std::atomic<double> ms{0};
  rt.post([&] {
    const std::int64_t began = measure::now_ns();
    value = fib_by_lazies(n);
    ms = ms_of(began);
  });
  rt.run();
  return {ms * 1e6 / static_cast<double>(fib_calls(n)), value};
}

// Forks down to the row of the cut.
work<std::uint64_t> queens_work(board on, unsigned row, unsigned n, unsigned cut) {
  if (row == cut) co_return queens_alone(on, row, n);
  std::vector<work<std::uint64_t>> parts;
  parts.reserve(n - row);
  for (unsigned column = 0; column < n; ++column) {
    if (queen_fits(on, row, column))
      parts.push_back(queens_work(with_queen(on, row, column), row + 1, n, cut));
  }
  co_await troupe::fork(std::span(parts));
  std::uint64_t sum = 0;
  for (auto& part : parts) sum += part.take();
  co_return sum;
}
measure::result queens(unsigned workers, unsigned n, unsigned cut) {
  double ms = 0;
  const std::uint64_t found = on_pool(workers, queens_work({}, 0, n, cut), ms);
  return {ms, found};
}
measure::result nqueens_fork(unsigned workers, std::uint64_t n) {
  return queens(workers, static_cast<unsigned>(n), static_cast<unsigned>(n));
}
measure::result nqueens_cut(unsigned workers, std::uint64_t n) {
  return queens(workers, static_cast<unsigned>(n), queens_cut_row);
}

// A loop at each node. Workers that have nothing to do join it.
std::uint64_t queens_shared(const board& on, unsigned row, unsigned n) {
  if (row == n) return 1;
  return troupe::shared_reduce(
      0u, n, std::uint64_t{0}, std::plus(), [&](unsigned column) -> std::uint64_t {
        return queen_fits(on, row, column) ? queens_shared(with_queen(on, row, column), row + 1, n)
                                           : 0;
      });
}
measure::result nqueens(unsigned workers, std::uint64_t n) {
  auto all = [](unsigned rows) -> work<std::uint64_t> { co_return queens_shared({}, 0, rows); };
  double ms = 0;
  const std::uint64_t found = on_pool(workers, all(static_cast<unsigned>(n)), ms);
  return {ms, found};
}

work<std::uint64_t> skynet_work(std::uint64_t number, std::uint64_t leaves) {
  if (leaves == 1) co_return number;
  std::vector<work<std::uint64_t>> parts;
  parts.reserve(skynet_ways);
  const std::uint64_t each = leaves / skynet_ways;
  for (std::uint64_t i = 0; i < skynet_ways; ++i)
    parts.push_back(skynet_work(number + i * each, each));
  co_await troupe::fork(std::span(parts));
  std::uint64_t sum = 0;
  for (auto& part : parts) sum += part.take();
  co_return sum;
}
measure::result skynet(unsigned workers, std::uint64_t leaves) {
  double ms = 0;
  const std::uint64_t sum = on_pool(workers, skynet_work(0, leaves), ms);
  return {ms * 1e6 / static_cast<double>(leaves), sum};
}

template <measure::result (*Bench)(unsigned, std::uint64_t)>
measure::result speed_up(unsigned workers, std::uint64_t size) {
  const double alone = Bench(1, size).value;
  const measure::result together = Bench(workers, size);
  return {alone / together.value, together.check};
}

measure::result loop(unsigned workers, std::uint64_t count) {
  std::vector<float> all = make_floats(count);
  auto rounds = [](std::vector<float>& floats) -> work<int> {
    const auto body = [](float& x) { shade_in_place(x); };
    for (int round = 0; round < loop_rounds; ++round) co_await troupe::parallel_for(floats, body);
    co_return loop_rounds;
  };
  double ms = 0;
  const int done = on_pool(workers, rounds(all), ms);
  return {ms / done, count_right(all, done)};
}

// A thread on CPU 0 sleeps in get() for a lazy that another thread, on CPU 1, computes. Measures
// the time from the end of the lazy until the getter continues.
measure::result wake(unsigned, std::uint64_t times) {
  std::vector<std::int64_t> latencies;
  latencies.reserve(times);
  for (std::uint64_t i = 0; i < times; ++i) {
    std::atomic<bool> begun{false};
    std::atomic<std::int64_t> ended_ns{0};
    const troupe::lazy value([&] {
      begun = true;
      measure::sleep_ms(1);  // the getter sleeps by then
      ended_ns = measure::now_ns();
    });
    std::thread runs([&] {
      measure::pin_this_thread(1);
      value.get();
    });
    while (!begun) std::this_thread::yield();
    value.get();
    latencies.push_back(measure::now_ns() - ended_ns);
    runs.join();
  }
  return measure::latency_result(std::move(latencies));
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr measure::entry table[] = {
      {"fib", 34, fib},
      {"fib_lazy", 30, fib_lazy},
      {"nqueens", 13, nqueens},
      {"nqueens_fork", 13, nqueens_fork},
      {"nqueens_cut", 13, nqueens_cut},
      {"skynet", 1'000'000, skynet},
      {"scaling_fib", 36, speed_up<fib>},
      {"scaling_nqueens", 13, speed_up<nqueens>},
      {"for", 10'000'000, loop},
      {"wake", 1'000, wake},
      {"ramp", 5, troupe_bench::ramp<troupe_bench::ramp_by_work<troupe_bench::ramp_span>>},
      {"ramp_halves", 5, troupe_bench::ramp<troupe_bench::ramp_by_work<troupe_bench::ramp_halves>>},
      {"ramp_for", 5, troupe_bench::ramp<troupe_bench::ramp_by_work<troupe_bench::ramp_for>>},
      {"ramp_reduce", 5, troupe_bench::ramp<troupe_bench::ramp_by_work<troupe_bench::ramp_reduce>>},
      {"ramp_sort", 5, troupe_bench::ramp<troupe_bench::ramp_by_work<troupe_bench::ramp_sort>>},
      {"ramp_lazies", 5, troupe_bench::ramp<troupe_bench::ramp_by_work<troupe_bench::ramp_lazies>>},
      {"ramp_tasks", 5, troupe_bench::ramp<troupe_bench::ramp_by_tasks>},
      {"ramp_actors", 5, troupe_bench::ramp<troupe_bench::ramp_by_actors>},
  };
  measure::run_program(argc, argv, table);
}
