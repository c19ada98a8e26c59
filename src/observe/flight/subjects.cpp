#include "observe/flight/subjects.hpp"

#include "base/invariant.hpp"

namespace troupe::observe {
namespace {

constinit subject table[subjects::size];

}  // namespace

std::uint16_t subjects::find_or_add(std::uint64_t key, const description& is) noexcept {
  constexpr std::uint64_t spread = 0x9E3779B97F4A7C15u;
  constexpr std::size_t looks_max = 64;
  std::size_t at = static_cast<std::size_t>(key * spread >> 52);
  for (std::size_t looks = 0; looks < looks_max; ++looks, at = (at + 1) % size) {
    if (at < first_free) continue;
    subject& place = table[at];
    // order: relaxed  the key alone decides; a reader of the rest looks at `ready` (S1)
    std::uint64_t seen = place.key.load(std::memory_order_relaxed);
    // order: relaxed (both)  as above
    if (seen == 0 && place.key.compare_exchange_strong(seen, key, std::memory_order_relaxed)) {
      // order: relaxed  the thread's own
      TROUPE_INVARIANT(!place.ready.load(std::memory_order_relaxed), "S1");
      place.at = is.at;
      place.name = is.name;
      place.line = is.line;
      place.kind = is.kind;
      place.ready.store(true, std::memory_order_release);  // order: release  S1; pairs with of
      return static_cast<std::uint16_t>(at);
    }
    if (seen == key) return static_cast<std::uint16_t>(at);
  }
  return other;
}

const subject* subjects::of(std::uint16_t number) noexcept {
  if (number < first_free || number >= size) return nullptr;
  const subject& place = table[number];
  // order: acquire  sees the rest (S1); pairs with find_or_add
  return place.ready.load(std::memory_order_acquire) ? &place : nullptr;
}

const subject* subjects::all() noexcept { return table; }

}  // namespace troupe::observe
