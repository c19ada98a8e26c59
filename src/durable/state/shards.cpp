#include "durable/state/shards.hpp"

#include "base/invariant.hpp"

namespace troupe::durable::parts {

shard_set shards::held_of(const std::vector<held_shard>& named) const noexcept {
  shard_set still_held;
  for (const held_shard& held : named) {
    if (fences_[held.shard] == held.fence) still_held.set(held.shard);
  }
  return still_held;
}

std::vector<std::uint32_t> shards::all_here() const {
  std::vector<std::uint32_t> all;
  for (std::uint32_t shard = 0; shard < shard_count; ++shard) {
    if (fences_[shard] != 0) all.push_back(shard);
  }
  return all;
}

shard_set shards::gain(const std::vector<held_shard>& named) {
  shard_set again;
  for (const held_shard& gained : named) {
    if (is_here(gained.shard) && fences_[gained.shard] != gained.fence) again.set(gained.shard);
    if (fences_[gained.shard] != gained.fence) gained_[gained.shard] = gained.fence;
  }
  return again;
}

bool shards::begin_taking() noexcept {
  if (takes_over_ || gained_.empty()) return false;
  takes_over_ = true;
  return true;
}

bool shards::take_next() {
  TROUPE_INVARIANT(takes_over_, "H3");
  for (const auto& [shard, fence] : std::exchange(gained_, {})) taking_[shard] = fence;
  takes_over_ = !taking_.empty();
  return takes_over_;
}

void shards::take() {
  TROUPE_INVARIANT(takes_over_ && !must_forget_, "H2");
  for (const auto& [shard, fence] : std::exchange(taking_, {})) {
    fences_[shard] = fence;
    drains_.reset(shard);
  }
}

shard_set shards::lose(const std::vector<std::uint32_t>& named) {
  shard_set lost;
  for (const std::uint32_t shard : named) {
    gained_.erase(shard);
    taking_.erase(shard);
    lost[shard] = is_here(shard);
  }
  return lost;
}

void shards::drain(const shard_set& leaving) {
  drains_ |= leaving;
  for (std::uint32_t shard = 0; shard < shard_count; ++shard)
    TROUPE_INVARIANT(!drains_[shard] || is_here(shard), "H1");
}

void shards::drop(const shard_set& lost) {
  for (std::uint32_t shard = 0; shard < shard_count; ++shard) {
    if (lost[shard]) fences_[shard] = 0;
  }
  drains_ &= ~lost;
}

void shards::give_away(held_shard gained) {
  for (fences* const each : {&gained_, &taking_}) {
    const auto known = each->find(gained.shard);
    if (known != each->end() && known->second == gained.fence) each->erase(known);
  }
}

void shards::name_in(filling& taken) const {
  if (!is_divided()) return;
  for (std::uint32_t shard = 0; shard < shard_count; ++shard) {
    TROUPE_INVARIANT(!taken.touched[shard] || fences_[shard] != 0 || must_forget_,
                     "shard_moves.S1");
    if (taken.touched[shard]) taken.data.shards.push_back({shard, fences_[shard]});
  }
}

std::vector<std::uint32_t> shards::ended_of(const filling& taken) const {
  std::vector<std::uint32_t> ended;
  for (const held_shard& held : taken.data.shards) {
    if (!scope_->acts_for(held)) ended.push_back(held.shard);
  }
  return ended;
}

}  // namespace troupe::durable::parts
