// A variant of two numbers: the text does not say which one it is.
// expect: troupe: of a std::variant in JSON each kind (null, bool, number, string, array, object) belongs to one alternative
#include <troupe/json/write.hpp>

#include <string>
#include <variant>

#ifdef CONTROL
using either = std::variant<std::string, double>;
#else
using either = std::variant<int, double>;
#endif

std::string use(const either& one) { return troupe::json::write(one); }
