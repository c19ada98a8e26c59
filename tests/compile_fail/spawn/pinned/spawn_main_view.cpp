// The text of this view may be gone when the actor is constructed on the main thread.
// expect: troupe: spawn: an argument is a pointer, a view
#include <string>
#include <string_view>
#include <troupe/troupe.hpp>

struct Window {
  explicit Window(std::string_view text) : title(text) {}
  std::string title;
};

void use(troupe::runtime& rt, std::string_view title) {
#ifdef CONTROL
  rt.spawn<Window>(title);
  rt.spawn<Window>(troupe::on_main(), std::string(title));
#else
  rt.spawn<Window>(troupe::on_main(), title);
#endif
}
