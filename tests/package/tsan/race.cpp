// A mistake of the program: two actors share a number that neither of them owns.
#include <cstdio>

#include <troupe/actors.hpp>

namespace {

struct counts {
  troupe::unchecked<long*> shared;
  void add_to_the_shared_number(int) { ++*shared.value; }
};

}  // namespace

int main() {
  long shared = 0;
  troupe::runtime rt({.workers = 4});
  const auto first = rt.spawn<counts>(troupe::pinned("first"), troupe::unchecked{&shared});
  const auto second = rt.spawn<counts>(troupe::pinned("second"), troupe::unchecked{&shared});
  for (int i = 0; i < 2000; ++i) {
    first.tell<&counts::add_to_the_shared_number>(i);
    second.tell<&counts::add_to_the_shared_number>(i);
  }
  rt.run();
  std::printf("%ld\n", shared);
}
