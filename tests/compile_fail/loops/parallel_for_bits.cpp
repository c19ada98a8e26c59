// Neighbours in a std::vector<bool> share a word.
// expect: troupe: parallel_for: threads that write to neighbours in a std::vector<bool> lose bits; use a std::vector<char>
#include <troupe/troupe.hpp>
#include <utility>
#include <vector>

void use(std::vector<bool>& bits) {
#ifdef CONTROL
  troupe::parallel_for(std::as_const(bits), [](bool) {}).get();
#else
  troupe::parallel_for(bits, [](auto bit) { bit = true; }).get();
#endif
}
