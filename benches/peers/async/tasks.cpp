// The rows task/* with std::async: a thread for each fork, where the system allows so many;
// fib_lazy by deferred calls, which run in the thread that wants their results. ../../README.md
// says what each measures.
#include <array>
#include <atomic>
#include <cstdint>
#include <future>
#include <thread>
#include <vector>

#include "../../measure.hpp"
#include "../../task_work.hpp"

namespace {

using namespace task_work;

template <std::launch How>
std::uint64_t fib_in(std::uint64_t n) {
  if (n < 2) return n;
  auto one = std::async(How, fib_in<How>, n - 1);
  const std::uint64_t two = fib_in<How>(n - 2);
  return one.get() + two;
}
template <std::launch How>
measure::result fib(unsigned, std::uint64_t n) {
  const measure::stopwatch watch;
  const std::uint64_t value = fib_in<How>(n);
  return {watch.ns_per(fib_calls(n)), value};
}

std::uint64_t queens_in(const board& on, unsigned row, unsigned n) {
  if (row == queens_cut_row) return queens_alone(on, row, n);
  std::vector<std::future<std::uint64_t>> parts;
  for (unsigned column = 0; column < n; ++column) {
    if (queen_fits(on, row, column))
      parts.push_back(
          std::async(std::launch::async, queens_in, with_queen(on, row, column), row + 1, n));
  }
  std::uint64_t sum = 0;
  for (auto& part : parts) sum += part.get();
  return sum;
}
measure::result nqueens_cut(unsigned, std::uint64_t n) {
  const std::int64_t began = measure::now_ns();
  const std::uint64_t found = queens_in({}, 0, static_cast<unsigned>(n));
  return {ms_of(began), found};
}

std::uint64_t skynet_in(std::uint64_t number, std::uint64_t leaves) {
  if (leaves == 1) return number;
  std::array<std::future<std::uint64_t>, skynet_ways> parts;
  const std::uint64_t each = leaves / skynet_ways;
  for (std::uint64_t i = 0; i < skynet_ways; ++i)
    parts[i] = std::async(std::launch::async, skynet_in, number + i * each, each);
  std::uint64_t sum = 0;
  for (auto& part : parts) sum += part.get();
  return sum;
}
measure::result skynet(unsigned, std::uint64_t leaves) {
  const measure::stopwatch watch;
  const std::uint64_t sum = skynet_in(0, leaves);
  return {watch.ns_per(leaves), sum};
}

// A thread for each worker and round.
measure::result loop(unsigned workers, std::uint64_t count) {
  std::vector<float> all = make_floats(count);
  const std::int64_t began = measure::now_ns();
  for (int round = 0; round < loop_rounds; ++round) {
    std::vector<std::future<void>> parts;
    for (unsigned i = 0; i < workers; ++i) {
      float* const first = all.data() + count * i / workers;
      float* const last = all.data() + count * (i + 1) / workers;
      parts.push_back(std::async(std::launch::async, [first, last] {
        for (float* at = first; at != last; ++at) shade_in_place(*at);
      }));
    }
    for (auto& part : parts) part.get();
  }
  return {ms_of(began) / loop_rounds, count_right(all, loop_rounds)};
}

measure::result wake(unsigned, std::uint64_t times) {
  std::vector<std::int64_t> latencies;
  latencies.reserve(times);
  for (std::uint64_t i = 0; i < times; ++i) {
    std::atomic<std::int64_t> ended_ns{0};
    auto value = std::async(std::launch::async, [&] {
      measure::pin_this_thread(1);
      measure::sleep_ms(1);  // the getter is asleep by then
      ended_ns = measure::now_ns();
    });
    value.get();
    latencies.push_back(measure::now_ns() - ended_ns);
  }
  return measure::latency_result(std::move(latencies));
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr measure::entry table[] = {{"fib", 18, fib<std::launch::async>},
                                             {"fib_lazy", 30, fib<std::launch::deferred>},
                                             {"nqueens_cut", 13, nqueens_cut},
                                             {"skynet", 10'000, skynet},
                                             {"for", 10'000'000, loop},
                                             {"wake", 1'000, wake}};
  measure::run_program(argc, argv, table);
}
