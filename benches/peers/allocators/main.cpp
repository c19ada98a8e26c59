// The rivals of the rows context/*: with ARENA malloc_arena or monotonic_arena. ../../README.md
// says what each row measures.
#include "../../allocations.hpp"
#include "arenas.hpp"

namespace {

measure::result allocate(unsigned, std::uint64_t size) {
  return allocations::allocate<ARENA>(size);
}
measure::result request(unsigned, std::uint64_t size) { return allocations::request<ARENA>(size); }

}  // namespace

int main(int argc, char** argv) {
  static constexpr measure::entry table[] = {
      {"allocate", 100'000'000, allocate},
      {"request", 200'000, request},
  };
  measure::run_program(argc, argv, table);
}
