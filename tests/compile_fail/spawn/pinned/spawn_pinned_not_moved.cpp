// An argument that can only be moved must be given with std::move.
// expect: troupe: spawn: an argument can only be moved; give it with std::move
#include <memory>
#include <troupe/troupe.hpp>

struct Store {
  explicit Store(std::unique_ptr<int> one) : kept(std::move(one)) {}
  std::unique_ptr<int> kept;
};

void use(troupe::runtime& rt, std::unique_ptr<int> one) {
#ifdef CONTROL
  rt.spawn<Store>(troupe::pinned("store"), std::move(one));
#else
  rt.spawn<Store>(troupe::pinned("store"), one);
#endif
}
