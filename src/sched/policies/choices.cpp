#include "sched/policies/choices.hpp"

#include <algorithm>
#include <new>

#include "base/mix_bits.hpp"

namespace troupe::sched {
namespace {

// The steps of splitmix64.
std::uint64_t mixed(std::uint64_t number) noexcept {
  return base::mix_bits(number + base::golden_step);
}

std::mt19937_64 stream_of(std::uint64_t seed, std::uint32_t number) {
  std::seed_seq from{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                     number};
  return std::mt19937_64(from);
}

}  // namespace

choice_name child_name(choice_name maker, std::uint32_t nth) noexcept {
  return mixed(maker ^ mixed(nth));
}

seeded_source::seeded_source(std::uint64_t seed)
    : seed_(seed),
      random_{std::mt19937_64(seed), stream_of(seed, 1), stream_of(seed, 2), stream_of(seed, 3),
              stream_of(seed, 4)} {}

std::uint64_t seeded_source::decide(const choice_point& at) {
  switch (at.kind) {
    case choice_kind::next:
    case choice_kind::look_at_io:
      return draw(at.bound, turns);
    case choice_kind::turn_length:
      return turn_length(at.bound);
    case choice_kind::ready_units:
      return ready_units(at.bound);
    case choice_kind::wins:
      return draw(at.bound, selects);
    case choice_kind::turn_time:
    case choice_kind::aside_time:
      return draw(at.bound, time);
    case choice_kind::value:
      return draw(at.bound, values);
    case choice_kind::call:
      return draw(at.bound, calls);
    case choice_kind::delay:
    case choice_kind::outcome:
      break;
  }
  const std::uint64_t upper = at.connection->random(), lower = at.connection->random();
  return share_of(at.bound, upper << 33 | lower << 2);
}

void seeded_source::begin(connection_choices& connection) {
  connection.random.seed(
      static_cast<std::minstd_rand::result_type>(mixed(seed_ ^ connection.name)));
}

std::uint64_t seeded_source::draw(std::uint64_t bound, stream from) {
  if (bound < 2 && from == turns) return 0;
  return share_of(bound, random_[from]());
}

// Short turns should be as frequent as long ones: they are where interleavings differ.
std::uint64_t seeded_source::turn_length(std::uint64_t most) {
  return draw(std::min(most, std::uint64_t{1} << draw(13, turns)), turns);
}

// For some seeds others run between any two awaits, for others as on real threads.
std::uint64_t seeded_source::ready_units(std::uint64_t most) const {
  std::mt19937_64 random(~seed_);
  const std::uint64_t drawn = random();
  if (drawn % 4 == 0) return 0;
  return drawn % 4 == 1 ? 1 + (drawn >> 8) % 7 : most - 1;
}

void runnable_names::name_if_new(runnable& item, bool in_turn) noexcept {
  if (item.deferred_slot != 0) restore(item, {new_child(in_turn)});
}

void runnable_names::restore(runnable& item, const named& known) noexcept try {
  all_[&item] = known;
  item.deferred_slot = 0;
} catch (const std::bad_alloc&) {
}

runnable_names::named runnable_names::forget(runnable& item) noexcept {
  item.deferred_slot = -1;
  const auto found = all_.find(&item);
  if (found == all_.end()) return {};
  const named known = found->second;
  all_.erase(found);
  return known;
}

lineage runnable_names::lineage_of(const runnable& item) const noexcept {
  const auto found = all_.find(&item);
  if (found == all_.end()) return {};
  return found->second;
}

choice_name runnable_names::begin_turn(const runnable& item) noexcept {
  const auto found = all_.find(&item);
  running_ = found == all_.end() ? &program_ : &found->second;
  return running_->name;
}

lineage runnable_names::new_child(bool in_turn) noexcept {
  named& maker = in_turn ? *running_ : program_;
  const std::uint32_t nth = ++maker.children;
  return {child_name(maker.name, nth), maker.name, nth};
}

}  // namespace troupe::sched
