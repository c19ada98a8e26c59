// actors: our contestant for the rows actor/* and sched/*. README.md says what each measures.
#include "measure.hpp"
#include "troupe/crowds.hpp"
#include "troupe/idle.hpp"
#include "troupe/pipelines.hpp"
#include "troupe/streams.hpp"

int main(int argc, char** argv) {
  using namespace troupe_bench;
  static constexpr measure::entry table[] = {
      {"ping_pong", 2'000'000, ping_pong},
      {"counting", 10'000'000, counting},
      {"fork_join_throughput", 100'000, fork_join_throughput},
      {"fork_join_create", 1'000'000, fork_join_create},
      {"thread_ring_100", 2'000'003, thread_ring<100>},
      {"thread_ring_10000", 2'000'003, thread_ring<10'000>},
      {"big", 20'000, big},
      {"chameneos", 1'000'000, chameneos},
      {"bounded_buffer", 1'800, bounded_buffer<troupe::policy::work_stealing>},
      {"bounded_buffer_shared", 1'800, bounded_buffer<troupe::policy::shared_queue>},
      {"radix", 100'000, radix<troupe::policy::work_stealing>},
      {"radix_shared", 100'000, radix<troupe::policy::shared_queue>},
      {"idle_memory", 5'000'000, idle_memory},
      {"idle_cpu", 10, idle_cpu},
      {"wake_latency", 2'000, wake_latency},
      {"scaling", 20'000, scaling},
  };
  measure::run_program(argc, argv, table);
}
