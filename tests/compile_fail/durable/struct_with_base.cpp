// A struct with a base class cannot be stored member by member.
// expect: troupe: a struct with a base class cannot be stored
// also: no matching
#include <troupe/durable/codec.hpp>

#include <string>
#include <vector>

struct person {
  std::string name;
};
#ifdef CONTROL
struct customer {
  person is;
  int cents = 0;
};
#else
struct customer : person {
  int cents = 0;
};
#endif

std::vector<std::byte> use(const customer& of) { return troupe::durable::encode(of); }
