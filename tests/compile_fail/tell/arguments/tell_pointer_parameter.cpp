// A pointer could dangle or race. An explicit wrapper allows it.
// expect: troupe: tell: a parameter of the method is a pointer, a view, an iterator, a lock or a reference wrapper
#include <troupe/troupe.hpp>

struct Reader {
  void read(const int* at) { n += *at; }
  void read_unchecked(troupe::unchecked<const int*> at) { n += *at.value; }
  int n = 0;
};

static const int table[] = {1, 2, 3};

void use(troupe::ref<Reader> reader) {
#ifdef CONTROL
  reader.tell<&Reader::read_unchecked>(troupe::unchecked{&table[0]});
#else
  reader.tell<&Reader::read>(&table[0]);
#endif
}
