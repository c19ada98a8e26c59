// A program of a user who has installed troupe: it uses one part of each kind and nothing of this
// tree.
#include <cstdio>

#include "counter.hpp"

int main() {
  troupe::runtime rt;
  auto actor = rt.spawn<counter>();
  actor.tell<&counter::add>(20);
  add_twenty(actor);
  actor.tell([](counter& self) { self.add(2); });
  actor.tell([](counter& self) { std::printf("%d\n", self.total); });
  rt.run();
}
