// A bound message must own its arguments.
// expect: troupe: bind: an argument is a pointer, a view, an iterator, a lock or a reference wrapper
#include <string>
#include <string_view>
#include <troupe/troupe.hpp>

struct Log {
  void line(std::string text) { size += text.size(); }
  std::size_t size = 0;
};

void use(troupe::ref<Log> log) {
#ifdef CONTROL
  log.bind<&Log::line>(std::string("text"))();
#else
  log.bind<&Log::line>(std::string_view("text"))();
#endif
}
