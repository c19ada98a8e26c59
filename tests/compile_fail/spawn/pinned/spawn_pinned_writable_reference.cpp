// A constructor that writes to its argument would write to a copy.
// expect: troupe: spawn: these arguments do not fit a constructor of the actor, which is called later on its own thread
// expect: troupe::unchecked<X&>{it}
#include <string>
#include <troupe/troupe.hpp>

struct Reader {
  explicit Reader(std::string& text) { text += "read"; }
};

void use(troupe::runtime& rt, std::string& text) {
#ifdef CONTROL
  rt.spawn<Reader>(text);
  rt.spawn<Reader>(troupe::pinned("reader"), troupe::unchecked<std::string&>{text});
#else
  rt.spawn<Reader>(troupe::pinned("reader"), text);
#endif
}
