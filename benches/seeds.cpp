// seeds: the rival of the rows explore/*: the same executions by seeds, without a search.
#include "measure.hpp"
#include "troupe/schedules.hpp"

int main(int argc, char** argv) {
  using namespace troupe_bench;
  static constexpr measure::entry table[] = {
      {"explore_clerks", 20'000, seeded<deliver_twice>},
      {"explore_ring", 2'000, seeded<pass_round>},
      {"explore_echo", 5'000, seeded<echo>},
  };
  measure::run_program(argc, argv, table);
}
