// Neighbours in a std::vector<bool> share a word.
// expect: troupe: parallel_sort: threads that write to neighbours in a std::vector<bool> lose bits; use a std::vector<char>
#include <troupe/troupe.hpp>
#include <vector>

void use(std::vector<bool>& bits, std::vector<char>& bytes) {
#ifdef CONTROL
  troupe::parallel_sort(bytes).get();
#else
  troupe::parallel_sort(bits).get();
#endif
}
