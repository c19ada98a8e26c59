// A part of the program that may be compiled with other flags than the rest: it makes messages that
// the rest frees.
#include "counter.hpp"

void add_twenty(const troupe::ref<counter>& to) {
  int one = 1;  // sent as an lvalue, which the rest never does
  for (int i = 0; i < 20; ++i) to.tell<&counter::add>(one);
}
