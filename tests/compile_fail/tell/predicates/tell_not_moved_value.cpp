// An argument that can only be moved must be given with std::move.
// expect: troupe: tell: an argument can only be moved; give it with std::move
#include <memory>
#include <troupe/troupe.hpp>

struct Store {
  void keep(std::unique_ptr<int> one) { kept = std::move(one); }
  std::unique_ptr<int> kept;
};

void use(troupe::ref<Store> to, std::unique_ptr<int> one) {
#ifdef CONTROL
  to.tell<&Store::keep>(std::move(one));
#else
  to.tell<&Store::keep>(one);
#endif
}
