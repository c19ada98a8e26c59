// The actor's class hides this method.
// expect: troupe: tell: this method belongs to a private or ambiguous base of the actor
#include <troupe/troupe.hpp>

struct Base {
  void add(int k) { n += k; }
  int n = 0;
};
struct Derived : private Base {
  void add_more(int k) { add(k); }
};

void use(troupe::ref<Derived> to) {
#ifdef CONTROL
  to.tell<&Derived::add_more>(5);
#else
  to.tell<&Base::add>(5);
#endif
}
