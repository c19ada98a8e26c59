// An atomic reference is a reference.
// expect: troupe: tell: a parameter of the method is a pointer, a view, an iterator, a lock or a reference wrapper
#include <atomic>
#include <memory>
#include <troupe/troupe.hpp>

struct Counter {
  void count(std::atomic_ref<int> total) { ++total; }
  void count_shared(std::shared_ptr<std::atomic<int>> total) { ++*total; }
};

void use(troupe::ref<Counter> to, int total) {
#ifdef CONTROL
  to.tell<&Counter::count_shared>(std::make_shared<std::atomic<int>>(total));
#else
  to.tell<&Counter::count>(std::atomic_ref<int>(total));
#endif
}
