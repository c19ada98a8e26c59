// A array of pointers that travels in a message dangles or races: refused by name, let through only
// in troupe::unchecked.
// expect: troupe: tell: a parameter of the method is a pointer, a view, an iterator, a lock or a reference wrapper
// expect: troupe::unchecked
// expect: look
#include <array>
#include <string>
#include <string_view>

#include "troupe/troupe.hpp"

struct reader {
  void look(std::array<const char*, 2> what) { static_cast<void>(what); }
  void look_unchecked(troupe::unchecked<std::array<const char*, 2>> what) {
    static_cast<void>(what);
  }
};

void use(troupe::ref<reader> to, std::string text) {
#ifdef CONTROL
  to.tell<&reader::look_unchecked>(
      troupe::unchecked<std::array<const char*, 2>>{std::array<const char*, 2>{}});
#else
  to.tell<&reader::look>(std::array<const char*, 2>{});
#endif
  static_cast<void>(text);
}
