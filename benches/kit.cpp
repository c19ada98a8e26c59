// kit: our contestant for the rows kit/*. README.md says what each measures.
#include "measure.hpp"
#include "troupe/locks.hpp"
#include "troupe/scopes.hpp"

int main(int argc, char** argv) {
  using namespace troupe_bench;
  static constexpr measure::entry table[] = {
      {"mutex", 20'000'000, lock_mutex},     {"mutex_64", 2'000'000, lock_mutex_64},
      {"semaphore", 20'000'000, acquire},    {"semaphore_64", 2'000'000, acquire_64},
      {"scope", 10'000'000, scope_of_empty},
  };
  measure::run_program(argc, argv, table);
}
