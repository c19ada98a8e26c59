// A struct that contains itself has no shape: the error names the struct and the member.
// expect: troupe: this member cannot be stored
// also: no matching
#include <troupe/durable/codec.hpp>

#include <string>
#include <vector>

struct tree {
  std::string name;
#ifdef CONTROL
  std::vector<std::string> branches;
#else
  std::vector<tree> branches;
#endif
};

std::vector<std::byte> use(const tree& of) { return troupe::durable::encode(of); }
