// The method belongs to another class than the actor's.
// expect: troupe: tell: this method is not one of the actor's class
#include <troupe/troupe.hpp>

struct Base {
  void add(int k) { n += k; }
  int n = 0;
};
struct Derived : Base {};
struct Other {
  void add(int) {}
};

void use(troupe::ref<Derived> actor) {
#ifdef CONTROL
  actor.tell<&Base::add>(5);
#else
  actor.tell<&Other::add>(5);
#endif
}
