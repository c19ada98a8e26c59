// The loop of placement.
#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/invariant.hpp"
#include "base/text/reason.hpp"
#include "cluster/placement/placement_core.hpp"
#include "cluster/placement/share.hpp"
#include "kit/clock_and_random.hpp"
#include "troupe/base/error.hpp"
#include "troupe/task/limits.hpp"

namespace troupe::cluster {

using std::chrono::milliseconds;

// Begins the loop, if it has ended since nothing was due; else lets it make a step.
void placement::core::wake() {
  bool begins = false;
  {
    std::lock_guard held(mutex_);
    begins = loop_.begin();
  }
  if (begins) {
    on_.spawn(run(shared_from_this()));
  } else {
    woken_.set();
  }
}

task<> placement::core::run(std::shared_ptr<core> self) {
  try {
    while (self->go_on()) {
      const time until = self->next_step();
      auto waits = self->woken_.wait();
      if (until == never) {
        co_await std::move(waits);
        continue;
      }
      const time pause = std::max(until - self->clock_(), time(milliseconds(1)));
      try {
        co_await std::move(waits).timeout(pause);
      } catch (const timed_out&) {
      }
    }
  } catch (const cancelled&) {
    self->kill();  // the runtime ends
  } catch (...) {
    self->kill();
    throw;
  }
}

// One renewal, beside the loop.
task<> placement::core::renew(std::shared_ptr<core> self, attempt renewing) {
  renewing.begun = self->clock_();
  try {
    auto asks = self->store_->renew(renewing.renewal);
    if (self->lasts_forever()) {
      renewing.view = co_await std::move(asks);
    } else {
      auto limited = with_deadline(time(self->chosen_.lease) / 4, std::move(asks));
      renewing.view = co_await std::move(limited);
    }
  } catch (...) {
    renewing.failed = std::current_exception();
  }
  {
    std::lock_guard held(self->mutex_);
    self->attempt_ = std::move(renewing);
  }
  self->woken_.set();
}

task<> placement::core::drain(std::shared_ptr<core> self, drained handed, time at_most) {
  const auto released = [self](std::vector<held_shard> part) {
    self->note({.shards = std::move(part), .well = true, .is_last = false});
  };
  try {
    if (self->told_.drain) {
      auto drains = self->told_.drain(handed.shards, released);
      auto limited = with_deadline(at_most, std::move(drains));
      co_await std::move(limited);
    }
    handed.well = true;
  } catch (...) {
    // Shards that were not released are given up.
  }
  self->note(std::move(handed));
}

void placement::core::note(drained ended) {
  {
    std::lock_guard held(mutex_);
    drained_.push_back(std::move(ended));
  }
  woken_.set();
}

// One step. False: the loop ends.
bool placement::core::go_on() {
  woken_.reset();
  std::optional<attempt> renewed;
  std::vector<drained> handed_over;
  {
    std::lock_guard held(mutex_);
    if (loop_.is_over()) return false;
    renewed = std::exchange(attempt_, std::nullopt);
    handed_over = std::exchange(drained_, {});
    hurries_ |= std::exchange(hurried_, false);
    if (stop_asked_) {
      departure_.begin();
      leave_by_ = *stop_asked_;
    }
  }
  expire();
  for (const drained& ended : handed_over) take(ended);
  if (renewed) take(*renewed);
  if (stage_.has_left()) {
    finish();
    return false;
  }
  begin_drains();
  begin_renewal();
  return !ends_for_now();
}

// Of a node that runs alone: nothing will be due.
bool placement::core::ends_for_now() {
  if (!lasts_forever() || renewing_ || drains_ != 0) return false;
  std::lock_guard held(mutex_);
  if (stop_asked_.has_value() != departure_.has_begun()) return false;
  loop_.pause();
  return true;
}

void placement::core::finish() noexcept {
  {
    std::lock_guard held(mutex_);
    loop_.end();
    words_.set_until(time(0));
    for (std::uint32_t i = 0; i < shard_count; ++i) words_.take_away(i);
  }
  started_.set();
  ended_.set();
}

// The lease has ended before it could be renewed (L1).
void placement::core::expire() {
  if (mine_ == 0 || clock_() < words_.until()) return;
  std::vector<std::uint32_t> lost;
  for (std::uint32_t i = 0; i < shard_count; ++i) {
    if (words_.fence(i) == 0) continue;
    words_.take_away(i);
    lost.push_back(i);
  }
  mine_ = 0;
  draining_.reset();
  plan_.reset();
  lose(lost);
}

void placement::core::lose(const std::vector<std::uint32_t>& shards) {
  if (shards.empty()) return;
  {
    std::lock_guard held(mutex_);
    counts_.lost += shards.size();
  }
  if (told_.lost) told_.lost(shards);
}

void placement::core::take(const drained& ended) {
  if (ended.is_last) --drains_;
  plan_.reset();
  std::vector<std::uint32_t> lost;
  for (const held_shard& shard : ended.shards) {
    // Otherwise it was released before, or lost and has perhaps come back.
    if (words_.fence(shard.shard) != shard.fence) continue;
    TROUPE_INVARIANT(draining_[shard.shard], "L2");
    words_.take_away(shard.shard);
    --mine_;
    draining_.reset(shard.shard);
    if (!ended.well) lost.push_back(shard.shard);
  }
  lose(lost);
}

void placement::core::take(const attempt& ended) {
  renewing_ = false;
  plan_.reset();
  last_renewal_ = clock_();
  {
    std::lock_guard held(mutex_);
    ++(ended.view ? counts_.renewals : counts_.failures);
    if (!ended.view) counts_.last_failure = base::reason_of(ended.failed);
  }
  if (!ended.view) return take_failure(ended);
  backoff_ = not_before_ = time(0);
  departure_.note_renewal(ended.renewal.self.is_leaving);
  if (ended.renewal.leaves) {
    stage_.leave();
  } else {
    apply(ended);
    const bool took_nothing = ended.renewal.wanted != 0 && !ended.view->has_changed;
    if (took_nothing) not_before_ = last_renewal_ + milliseconds(10);
    stage_.note_renewal(stage_.joins() && planned().want != 0);
    if (stage_.runs()) started_.set();
  }
  if (ended.view->has_changed && told_.changed) told_.changed();
}

void placement::core::take_failure(const attempt& ended) {
  seen_ = 0;
  if (stage_.joins()) {
    {
      std::lock_guard held(mutex_);
      start_failed_ = ended.failed;
    }
    stage_.leave();
    return;
  }
  stage_.note_failure();
  started_.set();
  if (ended.renewal.leaves && last_renewal_ >= leave_by_) {
    stage_.leave();
    return;
  }
  const time first = lasts_forever() ? time(milliseconds(50)) : time(chosen_.lease) / 120;
  backoff_ = std::clamp(backoff_ * 2, first, first * 10);
  not_before_ = last_renewal_ + backoff_ / 2 + random_part_of(backoff_ / 2);
}

// The store's answer. Shards that it has taken from us go first (W1 of lease_words).
void placement::core::apply(const attempt& ended) {
  const lease_view& view = *ended.view;
  const std::vector<std::uint32_t> lost = take_away_unless_held(view);
  if (view.members) note_members(*view.members);
  note_owners(view.changed);
  const std::vector<held_shard> gained = give_new(ended);
  seen_ = view.seen;
  if (!lasts_forever()) {
    next_renewal_ = ended.begun + period_ - random_part_of(period_ / 10);
    const time check_spread = std::min(time(milliseconds(250)), time(chosen_.lease) / 24);
    next_check_ = view.next_end == forever ? never
                                           : last_renewal_ + view.next_end + milliseconds(1) +
                                                 random_part_of(check_spread);
  }
  if (view.members && told_.members) told_.members(members());
  lose(lost);
  if (told_.gained && !gained.empty()) told_.gained(gained);
}

std::vector<std::uint32_t> placement::core::take_away_unless_held(const lease_view& view) {
  std::array<std::uint64_t, shard_count> held{};
  for (const held_shard& shard : view.held) held.at(shard.shard) = shard.fence;
  std::vector<std::uint32_t> lost;
  for (std::uint32_t i = 0; i < shard_count; ++i) {
    const std::uint64_t fence = words_.fence(i);
    if (fence == 0 || fence == held[i]) continue;
    words_.take_away(i);
    draining_.reset(i);
    --mine_;
    lost.push_back(i);
  }
  return lost;
}

// Whether this node acts for no other shards.
bool placement::core::has_only(const std::vector<held_shard>& held) const {
  std::uint32_t count = 0;
  for (const held_shard& shard : held) count += words_.fence(shard.shard) == shard.fence ? 1 : 0;
  return count == mine_;
}

// The lease counts from when the renewal was begun (L1). Shards that this node had when it began,
// and has not any more, do not come back so.
std::vector<held_shard> placement::core::give_new(const attempt& ended) {
  const time until = lasts_forever() ? never : ended.begun + chosen_.lease - chosen_.margin;
  std::vector<held_shard> gained;
  std::lock_guard held(mutex_);
  if (loop_.is_over()) return gained;
  TROUPE_INVARIANT(has_only(ended.view->held), "lease_words.W1");
  words_.set_until(until);
  if (clock_() >= until) return gained;
  for (const held_shard& shard : ended.view->held) {
    if (std::ranges::binary_search(ended.renewal.kept, shard)) continue;
    TROUPE_INVARIANT(words_.until() == until, "lease_words.W2");
    words_.give(shard.shard, shard.fence);
    ++mine_;
    gained.push_back(shard);
  }
  return gained;
}

void placement::core::note_members(const std::vector<member_row>& rows) {
  std::lock_guard held(mutex_);
  std::unordered_map<std::string_view, member_ptr> before;
  for (const member_ptr& member : members_) before.emplace(member->id, member);
  std::vector<member_ptr> all;
  all.reserve(rows.size());
  for (const member_row& row : rows) {
    const auto known = before.find(row.id);
    const bool is_same = known != before.end() && *known->second == row;
    all.push_back(is_same ? known->second : std::make_shared<const member_row>(row));
  }
  members_ = std::move(all);
}

void placement::core::note_owners(const std::vector<shard_row>& rows) {
  std::lock_guard held(mutex_);
  std::unordered_map<std::string_view, member_ptr> by_id;
  for (const member_ptr& member : members_) by_id.emplace(member->id, member);
  for (const shard_row& row : rows) {
    known_shard& known = rows_.at(row.shard);
    const auto found = by_id.find(row.owner);
    const member_ptr owner = found == by_id.end() ? nullptr : found->second;
    known = {owner, row.fence, row.owner == self_.id};
  }
}

const placement::core::plan& placement::core::planned() {
  if (!plan_) plan_ = make_plan();
  return *plan_;
}

placement::core::plan placement::core::make_plan() const {
  plan next;
  std::unordered_map<const member_row*, std::size_t> places;  // of those that stay
  std::optional<std::size_t> self;
  for (const member_ptr& member : members_) {
    if (member->is_leaving) continue;
    if (member->id == self_.id) self = places.size();
    places.emplace(member.get(), places.size());
  }
  std::vector<std::uint32_t> counts(places.size());
  std::uint32_t free = 0;
  for (std::uint32_t i = 0; i < shard_count; ++i) {
    const known_shard& row = rows_[i];
    const bool is_released = row.is_own && !has(row, i);
    next.releases |= is_released;
    if (row.owner == nullptr || is_released) {
      ++free;
    } else if (const auto at = places.find(row.owner.get()); at != places.end()) {
      ++counts[at->second];
    }
  }
  if (!self || departure_.has_begun()) return next;
  const std::uint32_t target = target_of(counts, *self);
  const std::uint32_t stays = mine_ - static_cast<std::uint32_t>(draining_.count());
  next.want = std::min(free, target - std::min(target, stays));
  next.excess = stays - std::min(target, stays);
  return next;
}

void placement::core::begin_drains() {
  const time now = clock_();
  std::uint32_t count = 0;
  time at_most = chosen_.drain_max;
  if (departure_.has_begun()) {
    count = mine_ - static_cast<std::uint32_t>(draining_.count());
    at_most = std::max(leave_by_ - now, time(0));
  } else if (drains_ == 0 && stage_.runs() && seen_ != 0) {
    count = planned().excess;
  }
  if (count == 0) return;
  drained begun;
  for (std::uint32_t i = shard_count; i-- > 0 && begun.shards.size() < count;) {
    if (words_.fence(i) == 0 || draining_.test(i)) continue;
    draining_.set(i);
    begun.shards.push_back({i, words_.fence(i)});
  }
  ++drains_;
  plan_.reset();
  on_.spawn(drain(shared_from_this(), std::move(begun), at_most));
}

// When the next renewal is to begin, if none is under way.
placement::core::time placement::core::due() const {
  time at = std::min(next_renewal_, next_check_);
  if (lasts_forever() && stage_.runs()) at = never;
  if (hurries_) at = std::min(at, last_renewal_ + hurry_pause());
  if (departure_.has_begun()) {
    if (mine_ == 0 && drains_ == 0) at = time(0);
    if (!departure_.is_announced() && !lasts_forever()) at = time(0);
  }
  if (plan_ && (plan_->want != 0 || plan_->releases)) at = time(0);
  return std::max(at, not_before_);
}

placement::core::time placement::core::next_step() const {
  const time end = mine_ != 0 ? words_.until() : never;
  return renewing_ ? end : std::min(end, due());
}

void placement::core::begin_renewal() {
  if (renewing_) return;
  const plan& now_planned = planned();
  if (due() > clock_()) return;
  attempt begun;
  renewal& renewal = begun.renewal;
  renewal.self = self_;
  renewal.self.is_leaving = departure_.has_begun();
  renewal.round = ++round_;
  renewal.lease = chosen_.lease;
  renewal.leaves = departure_.has_begun() && mine_ == 0 && drains_ == 0;
  renewal.wanted = departure_.has_begun() ? 0 : now_planned.want;
  renewal.seen = seen_;
  renewal.kept.reserve(mine_);
  for (std::uint32_t i = 0; i < shard_count; ++i) {
    if (const std::uint64_t fence = words_.fence(i); fence != 0) renewal.kept.push_back({i, fence});
  }
  renewing_ = true;
  hurries_ = false;
  on_.spawn(renew(shared_from_this(), std::move(begun)));
}

// All nodes together hurry some hundreds of times a second at most.
placement::core::time placement::core::hurry_pause() const {
  return std::clamp<time>(milliseconds(2) * members_.size(), milliseconds(50),
                          std::max(period_, time(milliseconds(50))));
}

placement::core::time placement::core::random_part_of(time whole) const {
  return time(static_cast<std::int64_t>(static_cast<double>(whole.count()) * kit::random_part()));
}

}  // namespace troupe::cluster
