// An iterator dangles when its container goes, and it could be used while the container changes.
// expect: troupe: tell: a parameter of the method is a pointer, a view, an iterator, a lock or a reference wrapper
// expect: Reader::read
#include <list>
#include <troupe/troupe.hpp>

struct Reader {
  void read(std::list<int>::const_iterator at) { sum += *at; }
  void read_all(const std::list<int>& all) { sum += all.front(); }
  int sum = 0;
};

void use(troupe::ref<Reader> to, const std::list<int>& numbers) {
#ifdef CONTROL
  to.tell<&Reader::read_all>(numbers);
#else
  to.tell<&Reader::read>(numbers.begin());
#endif
}
