// A container of std::pmr refers to the context in which it was made, and would still allocate
// there.
// expect: troupe: tell: a parameter of the method is a pointer, a view, an iterator, a lock or a reference wrapper
#include <memory_resource>
#include <string>
#include <troupe/troupe.hpp>

struct Reader {
  void read(std::pmr::string text) { n += text.size(); }
  void read_copy(std::string text) { n += text.size(); }
  std::size_t n = 0;
};

void use(troupe::ref<Reader> reader, troupe::context& work) {
  std::pmr::string text("a text", &work);
#ifdef CONTROL
  reader.tell<&Reader::read_copy>(std::string(text));
#else
  reader.tell<&Reader::read>(std::move(text));
#endif
}
