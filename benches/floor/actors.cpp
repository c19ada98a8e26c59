// The floor under the actor rows: the same benchmarks by hand, on one thread, with one atomic
// exchange and one compare-and-swap a message. It takes WORKERS like every contestant, but always
// uses one worker. That a second core makes a program slower is what the rows with two workers
// show.
#include "crowds.hpp"
#include "streams.hpp"

int main(int argc, char** argv) {
  using namespace floor_bench;
  static constexpr measure::entry table[] = {
      {"ping_pong", 2'000'000, ping_pong},
      {"counting", 10'000'000, counting},
      {"fork_join_throughput", 100'000, fork_join_throughput},
      {"fork_join_create", 1'000'000, fork_join_create},
      {"thread_ring_100", 2'000'003, thread_ring<100>},
      {"thread_ring_10000", 2'000'003, thread_ring<10'000>},
      {"big", 20'000, big},
      {"chameneos", 1'000'000, chameneos},
      {"idle_memory", 5'000'000, idle_memory},
  };
  measure::run_program(argc, argv, table);
}
