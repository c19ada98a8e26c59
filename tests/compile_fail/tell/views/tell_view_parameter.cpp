// A view dangles when its text is gone before the message is handled.
// expect: troupe: tell: a parameter of the method is a pointer, a view, an iterator, a lock or a reference wrapper
// expect: Log::line
#include <string>
#include <string_view>
#include <troupe/troupe.hpp>

struct Log {
  void line(std::string_view text) { size += text.size(); }
  void own_line(const std::string& text) { size += text.size(); }
  std::size_t size = 0;
};

void use(troupe::ref<Log> log) {
#ifdef CONTROL
  log.tell<&Log::own_line>("text");
#else
  log.tell<&Log::line>("text");
#endif
}
