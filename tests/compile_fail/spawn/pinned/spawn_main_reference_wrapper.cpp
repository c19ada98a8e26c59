// A reference wrapper is a pointer in another form.
// expect: troupe: spawn: an argument is a pointer, a view, an iterator, a lock or a reference wrapper
#include <functional>
#include <troupe/troupe.hpp>

struct Window {
  explicit Window(int& count) : frames(count) {}
  int& frames;
};

void use(troupe::runtime& rt, int& frames) {
#ifdef CONTROL
  rt.spawn<Window>(troupe::on_main(), troupe::unchecked<int&>{frames});
#else
  rt.spawn<Window>(troupe::on_main(), std::ref(frames));
#endif
}
