// A span dangles like a view of a text.
// expect: troupe: tell: a parameter of the method is a pointer, a view, an iterator, a lock or a reference wrapper
#include <span>
#include <troupe/troupe.hpp>
#include <vector>

struct Sum {
  void add(std::span<const int> numbers) { n += numbers.size(); }
  void add_all(std::vector<int> numbers) { n += numbers.size(); }
  std::size_t n = 0;
};

void use(troupe::ref<Sum> sum, std::vector<int> numbers) {
#ifdef CONTROL
  sum.tell<&Sum::add_all>(std::move(numbers));
#else
  sum.tell<&Sum::add>(numbers);
#endif
}
