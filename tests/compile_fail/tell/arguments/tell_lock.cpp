// A lock belongs to the thread that took it, and its mutex to another object.
// expect: troupe: tell: a parameter of the method is a pointer, a view, an iterator, a lock or a reference wrapper
// expect: Reader::read
#include <mutex>
#include <troupe/troupe.hpp>

struct Reader {
  void read(std::unique_lock<std::mutex> held) { sum += held.owns_lock(); }
  void read_all(bool held) { sum += held; }
  int sum = 0;
};

void use(troupe::ref<Reader> to, std::mutex& of) {
  std::unique_lock held(of);
#ifdef CONTROL
  to.tell<&Reader::read_all>(held.owns_lock());
#else
  to.tell<&Reader::read>(std::move(held));
#endif
}
