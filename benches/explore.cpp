// explore: our contestant for the rows explore/*. README.md says what each measures.
#include "measure.hpp"
#include "troupe/schedules.hpp"

int main(int argc, char** argv) {
  using namespace troupe_bench;
  static constexpr measure::entry table[] = {
      {"explore_clerks", 20'000, searched<deliver_twice>},
      {"explore_ring", 2'000, searched<pass_round>},
      {"explore_echo", 5'000, searched<echo>},
  };
  measure::run_program(argc, argv, table);
}
