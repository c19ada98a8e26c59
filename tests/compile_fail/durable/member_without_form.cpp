// A state with a member that cannot be stored: the error names the struct and the member.
// expect: troupe: this member cannot be stored
// also: no matching
#include <troupe/durable/codec.hpp>

#include <memory>
#include <string>
#include <vector>

struct account {
  std::string owner;
#ifdef CONTROL
  int limit;
#else
  std::unique_ptr<int> limit;
#endif
};

std::vector<std::byte> use(const account& of) { return troupe::durable::encode(of); }
