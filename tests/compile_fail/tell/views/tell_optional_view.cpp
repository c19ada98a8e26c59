// A optional view that travels in a message dangles or races: refused by name, let through only in
// troupe::unchecked.
// expect: troupe: tell: a parameter of the method is a pointer, a view, an iterator, a lock or a reference wrapper
// expect: troupe::unchecked
// expect: look
#include <optional>
#include <string>
#include <string_view>

#include "troupe/troupe.hpp"

struct reader {
  void look(std::optional<std::string_view> what) { static_cast<void>(what); }
  void look_unchecked(troupe::unchecked<std::optional<std::string_view>> what) {
    static_cast<void>(what);
  }
};

void use(troupe::ref<reader> to, std::string text) {
#ifdef CONTROL
  to.tell<&reader::look_unchecked>(
      troupe::unchecked<std::optional<std::string_view>>{std::optional<std::string_view>(text)});
#else
  to.tell<&reader::look>(std::optional<std::string_view>(text));
#endif
  static_cast<void>(text);
}
