// A struct with a member that has no form in JSON: the error names the member's type.
// expect: troupe: this type has no form in JSON
#include <troupe/json/read.hpp>

#include <string_view>
#include <thread>

struct order {
  int id;
#ifdef CONTROL
  int count;
#else
  std::thread worker;
#endif
};

order use(std::string_view text) { return troupe::json::read<order>(text); }
