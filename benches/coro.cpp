// coro: our contestant for the rows coro/*. README.md says what each measures.
#include "measure.hpp"
#include "troupe/sleepers.hpp"
#include "troupe/waits.hpp"

int main(int argc, char** argv) {
  using namespace troupe_bench;
  static constexpr measure::entry table[] = {
      {"ask", 2'000'000, ask},          {"ask_chain", 40'000, ask_chain},
      {"spawn", 10'000'000, spawn},     {"await_ready", 20'000'000, await_ready},
      {"switch", 5'000'000, hand_over}, {"memory", 1'000'000, memory},
      {"timers", 1'000'000, timers},
  };
  measure::run_program(argc, argv, table);
}
