// A struct with a view, which would outlive the text that it is read from.
// expect: troupe: a std::string_view would outlive the text that it is read from
#include <troupe/json/read.hpp>

#include <string>
#include <string_view>

struct order {
#ifdef CONTROL
  std::string who;
#else
  std::string_view who;
#endif
};

order use(std::string_view text) { return troupe::json::read<order>(text); }
