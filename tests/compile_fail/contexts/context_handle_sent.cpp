// A handle into a context cannot be an argument of a message: the receiver may handle it when the
// memory has gone.
// expect: troupe: tell: a parameter of the method is a pointer, a view, an iterator, a lock or a reference wrapper
#include <troupe/troupe.hpp>

struct Reader {
  void read(const troupe::in_context<int>&) {}
  void read_kept(troupe::persisted<int>) {}
};

void use(troupe::ref<Reader> reader, troupe::context& work) {
  auto number = work.make<int>(1);
#ifdef CONTROL
  reader.tell<&Reader::read_kept>(troupe::persist(number));
#else
  reader.tell<&Reader::read>(number);
#endif
}
