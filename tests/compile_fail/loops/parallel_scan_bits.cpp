// Neighbours in a std::vector<bool> share a word.
// expect: troupe: parallel_scan: threads that write to neighbours in a std::vector<bool> lose bits; write to a std::vector<char>
#include <troupe/troupe.hpp>
#include <vector>

void use(std::vector<bool>& bits, std::vector<char>& bytes) {
#ifdef CONTROL
  troupe::parallel_scan(bits, bytes.begin()).get();
#else
  troupe::parallel_scan(bytes, bits.begin()).get();
#endif
}
