// A program of a user who has installed troupe: it uses one part of each kind and nothing of this
// tree.
#include <cstdio>
#include <memory>

#include "counter.hpp"

#if defined(CONSUMER_LANGUAGE)
static_assert(__cplusplus / 100 == CONSUMER_LANGUAGE / 100, "of the package's CMake target");
#endif

int main() {
  troupe::runtime rt;
  auto actor = rt.spawn<counter>();
  actor.tell<&counter::add>(20);
  add_twenty(actor);
  rt.post([actor, two = std::make_unique<int>(2)] {
    actor.tell([number = *two](counter& self) { self.add(number); });
    actor.tell([](counter& self) { std::printf("%d\n", self.total); });
  });
  rt.run();
}
