#include "troupe/kit/actors/group_core.hpp"

#include "base/invariant.hpp"
#include "base/mix_bits.hpp"
#include "kit/clock_and_random.hpp"

namespace troupe::kit {
std::size_t random_below(std::size_t below) noexcept {
  return static_cast<std::size_t>(random_number() % below);
}

// Mixed twice, since std::hash of a number is often the number itself.
std::uint64_t fitness(std::uint64_t key_hash, std::uint64_t member) noexcept {
  return base::mix_bits(base::mix_bits(key_hash + base::golden_step) ^
                        base::mix_bits(member * base::golden_step));
}

void check_group([[maybe_unused]] std::size_t members, [[maybe_unused]] std::size_t places,
                 [[maybe_unused]] bool is_in_place) noexcept {
  TROUPE_INVARIANT(members == places && is_in_place, "G1");
}

void refuse_empty_group() {
  throw group_empty("troupe: actor_group: it has no members; add() one before you send");
}

}  // namespace troupe::kit
