// The floor of the rows task/*: plain calls on one thread, and a bare futex. README.md says what
// each measures.
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "../measure.hpp"
#include "../task_work.hpp"

namespace {

using namespace task_work;

// Not inlined into itself, because that would be other work.
[[gnu::noinline, gnu::optimize("no-inline", "no-optimize-sibling-calls")]] std::uint64_t call_fib(
    std::uint64_t n) {
  return n < 2 ? n : call_fib(n - 1) + call_fib(n - 2);
}
measure::result fib(unsigned, std::uint64_t n) {
  const measure::stopwatch watch;
  const std::uint64_t value = call_fib(n);
  return {watch.ns_per(fib_calls(n)), value};
}

measure::result nqueens(unsigned, std::uint64_t n) {
  const std::int64_t began = measure::now_ns();
  const std::uint64_t found = queens_alone({}, 0, static_cast<unsigned>(n));
  return {ms_of(began), found};
}

std::uint64_t call_skynet(std::uint64_t number, std::uint64_t leaves) {
  if (leaves == 1) return number;
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < skynet_ways; ++i)
    sum += call_skynet(number + i * (leaves / skynet_ways), leaves / skynet_ways);
  return sum;
}
measure::result skynet(unsigned, std::uint64_t leaves) {
  const measure::stopwatch watch;
  const std::uint64_t sum = call_skynet(0, leaves);
  return {watch.ns_per(leaves), sum};
}

measure::result loop(unsigned, std::uint64_t count) {
  std::vector<float> all = make_floats(count);
  const std::int64_t began = measure::now_ns();
  for (int round = 0; round < loop_rounds; ++round) {
    for (float& x : all) shade_in_place(x);
  }
  return {ms_of(began) / loop_rounds, count_right(all, loop_rounds)};
}

// The same as our benchmark: a thread on CPU 1 wakes one on CPU 0 that has slept for 1 ms.
measure::result wake(unsigned, std::uint64_t times) {
  std::vector<std::int64_t> latencies;
  for (std::uint64_t i = 0; i < times; ++i) {
    std::atomic<std::uint32_t> done{0};
    std::atomic<std::int64_t> ended_ns{0};
    std::thread runs([&] {
      measure::pin_this_thread(1);
      measure::sleep_ms(1);
      ended_ns = measure::now_ns();
      done = 1;
      syscall(SYS_futex, &done, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    });
    while (done == 0) syscall(SYS_futex, &done, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
    latencies.push_back(measure::now_ns() - ended_ns);
    runs.join();
  }
  return measure::latency_result(std::move(latencies));
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr measure::entry table[] = {{"fib", 34, fib},
                                             {"fib_lazy", 30, fib},
                                             {"nqueens", 13, nqueens},
                                             {"nqueens_fork", 13, nqueens},
                                             {"nqueens_cut", 13, nqueens},
                                             {"skynet", 1'000'000, skynet},
                                             {"for", 10'000'000, loop},
                                             {"wake", 1'000, wake}};
  measure::run_program(argc, argv, table);
}
