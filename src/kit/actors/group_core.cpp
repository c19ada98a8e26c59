#include "troupe/kit/actors/group_core.hpp"

#include "kit/surroundings.hpp"

namespace troupe::kit {
namespace {

// The last steps of splitmix64: each bit of the result depends on all bits of the number.
std::uint64_t mixed(std::uint64_t number) noexcept {
  number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9u;
  number = (number ^ (number >> 27)) * 0x94D049BB133111EBu;
  return number ^ (number >> 31);
}

}  // namespace

std::size_t random_below(std::size_t below) noexcept {
  return static_cast<std::size_t>(random_number() % below);
}

// Mixed twice, since std::hash of a number is often the number itself.
std::uint64_t fitness(std::uint64_t key_hash, std::uint64_t member) noexcept {
  return mixed(mixed(key_hash + 0x9E3779B97F4A7C15u) ^ mixed(member * 0x9E3779B97F4A7C15u));
}

void refuse_empty_group() {
  throw group_empty("troupe: actor_group: it has no members; add() one before you send");
}

}  // namespace troupe::kit
