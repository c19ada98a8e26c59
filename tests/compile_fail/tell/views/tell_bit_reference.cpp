// An element of std::vector<bool> is accessed by a reference object.
// expect: troupe: tell: a parameter of the method is a pointer, a view, an iterator, a lock or a reference wrapper
#include <troupe/troupe.hpp>
#include <vector>

struct Reader {
  void read(std::vector<bool>::reference bit) { seen = bit; }
  void read_value(bool bit) { seen = bit; }
  bool seen = false;
};

void use(troupe::ref<Reader> to, std::vector<bool> bits) {
#ifdef CONTROL
  to.tell<&Reader::read_value>(bits[0]);
#else
  to.tell<&Reader::read>(bits[0]);
#endif
}
