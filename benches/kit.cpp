// kit: our contestant for the rows kit/*. README.md says what each measures.
#include "measure.hpp"
#include "troupe/channels.hpp"
#include "troupe/generators.hpp"
#include "troupe/locks.hpp"
#include "troupe/scopes.hpp"

int main(int argc, char** argv) {
  using namespace troupe_bench;
  static constexpr measure::entry table[] = {
      {"mutex", 20'000'000, lock_mutex},           {"mutex_64", 2'000'000, lock_mutex_64},
      {"semaphore", 20'000'000, acquire},          {"semaphore_64", 2'000'000, acquire_64},
      {"channel_1_1", 10'000'000, channel_1_1},    {"channel_4_1", 10'000'000, channel_4_1},
      {"channel_4_4", 10'000'000, channel_4_4},    {"rendezvous", 5'000'000, rendezvous},
      {"broadcast_1_8", 1'000'000, broadcast_1_8}, {"select_8", 4'000'000, select_8},
      {"scope", 10'000'000, scope_of_empty},       {"async_generator", 10'000'000, async_generator},
  };
  measure::run_program(argc, argv, table);
}
