// The address of a local variable, and the wrapper that allows it.
// expect: troupe: spawn: an argument is a pointer, a view
#include <atomic>
#include <troupe/troupe.hpp>

struct Counter {
  explicit Counter(std::atomic<int>* to) : total(to) {}
  std::atomic<int>* total;
};

void use(troupe::runtime& rt) {
  std::atomic<int> total{0};
#ifdef CONTROL
  rt.spawn<Counter>(&total);
  rt.spawn<Counter>(troupe::pinned("counter"), troupe::unchecked{&total});
#else
  rt.spawn<Counter>(troupe::pinned("counter", {.on_error = troupe::error_policy::stop}), &total);
#endif
  rt.run();
}
