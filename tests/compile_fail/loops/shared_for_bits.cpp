// Neighbours in a std::vector<bool> share a word.
// expect: troupe: shared_for: threads that write to neighbours in a std::vector<bool> lose bits; use a std::vector<char>
#include <troupe/troupe.hpp>
#include <utility>
#include <vector>

void use(std::vector<bool>& bits) {
#ifdef CONTROL
  troupe::shared_for(std::as_const(bits), [](bool) {});
#else
  troupe::shared_for(bits, [](auto bit) { bit = true; });
#endif
}
