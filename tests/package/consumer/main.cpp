// A program of somebody who installed troupe: it uses one piece of each kind and nothing of this tree.
#include <troupe/troupe.hpp>

#include <cstdio>

struct counter {
  void add(int n) { total += n; }
  int total = 0;
};

int main() {
  troupe::runtime rt;
  auto actor = rt.spawn<counter>();
  actor.tell<&counter::add>(40);
  actor.tell([](counter& self) { self.add(2); });
  actor.tell([](counter& self) { std::printf("%d\n", self.total); });
  rt.run();
}
