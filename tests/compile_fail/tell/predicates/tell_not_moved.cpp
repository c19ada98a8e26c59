// An argument that can only be moved must be given with std::move.
// expect: troupe: tell: an argument can only be moved; give it with std::move
#include <memory>
#include <troupe/troupe.hpp>

struct Store {
  void look(const std::unique_ptr<int>& one) { sum += *one; }
  int sum = 0;
};

void use(troupe::ref<Store> to, std::unique_ptr<int> one) {
#ifdef CONTROL
  to.tell<&Store::look>(std::move(one));
#else
  to.tell<&Store::look>(one);
#endif
}
