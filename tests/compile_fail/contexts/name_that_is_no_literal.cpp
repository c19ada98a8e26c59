// The name of a context is kept: a text that a variable holds may be gone when it is read.
// expect: constant expression
// also: consteval
#include <string>
#include <troupe/troupe.hpp>

void use(const std::string& name) {
#ifdef CONTROL
  static_cast<void>(name);
  auto work = troupe::make_context({.name = "upload"});
#else
  auto work = troupe::make_context({.name = name.c_str()});
#endif
}
