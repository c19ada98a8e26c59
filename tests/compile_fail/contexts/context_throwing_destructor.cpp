// A rollback destroys one object after the other: no destructor may stop it half-way.
// expect: troupe: context::make: the destructor of T may throw
#include <troupe/troupe.hpp>

struct Right {
  ~Right() {}
};
struct Wrong {
  ~Wrong() noexcept(false) {}
};

void use(troupe::context& work) {
#ifdef CONTROL
  work.make<Right>();
#else
  work.make<Wrong>();
#endif
}
