// slab_index: the slabs of a slot_space by their numbers.
//
// Plain data: the space's mutex guards it.
// Invariants
//   I1  the numbers ascend.
//   I2  an entry without a slab was removed; at most half of the entries are, and one more. To
//       remove a slab therefore costs the same with any number of them, over many removals.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/invariant.hpp"

namespace troupe::memory {

struct slab;

class slab_index {
 public:
  using entry = std::pair<std::uint64_t, const slab*>;

  // The number is greater than all that are here. Throws std::bad_alloc.
  void add(std::uint64_t number, const slab* added) {
    TROUPE_INVARIANT(all_.empty() || all_.back().first < number, "I1");
    all_.emplace_back(number, added);
  }
  void remove(std::uint64_t number) noexcept {
    const auto found = std::ranges::lower_bound(all_, number, {}, &entry::first);
    TROUPE_INVARIANT(found != all_.end() && found->first == number && found->second != nullptr,
                     "I2");
    found->second = nullptr;
    if (++removed_ * 2 <= all_.size()) return;
    [[maybe_unused]] const std::size_t erased =
        std::erase_if(all_, [](const entry& known) { return known.second == nullptr; });
    TROUPE_INVARIANT(erased == removed_, "I2");
    removed_ = 0;
  }
  bool contains(const slab* wanted) const noexcept {
    return std::ranges::find(all_, wanted, &entry::second) != all_.end();
  }
  // Appends those whose number is at least that, by number, until `into` has `most`.
  void append_from(std::uint64_t number, std::size_t most, std::vector<entry>& into) const {
    for (auto at = std::ranges::lower_bound(all_, number, {}, &entry::first);
         at != all_.end() && into.size() < most; ++at) {
      if (at->second != nullptr) into.push_back(*at);
    }
  }

 private:
  std::vector<entry> all_;
  std::size_t removed_ = 0;
};

}  // namespace troupe::memory
