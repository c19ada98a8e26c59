#include "cluster/leases/memory_leases.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "kit/surroundings.hpp"
#include "troupe/database/error.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::cluster {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Everything under one mutex; a renewal is done as a whole.
struct memory_leases::tables {
  struct member {
    member_row row;
    std::uint64_t round = 0;
    nanoseconds until{0};
  };
  struct shard {
    std::string owner;
    std::uint64_t fence = 0;
    std::uint64_t changed = 0;
  };

  mutable std::mutex mutex;
  std::function<nanoseconds()> clock;
  lease_faults faults;
  bool away = false;
  std::set<std::string> cut_off;

  std::uint64_t version = 1;
  std::uint64_t members_changed = 1;
  std::map<std::string, member> members;
  std::array<shard, shard_count> shards;

  lease_view apply(const renewal& what);

 private:
  bool drop_members(const renewal& what, nanoseconds now);
  bool give(shard& one, const std::string& to, std::uint64_t in) const;
  lease_view view_for(const renewal& what, nanoseconds now) const;
};

namespace {

using tables = memory_leases::tables;

[[noreturn]] void fail(database::failure kind, database::effect done) {
  throw database::error(kind, 0, "troupe: cluster: the store of leases in memory failed",
                        database::rule::other, done);
}

}  // namespace

// Those that leave, and those whose leases have run out.
bool memory_leases::tables::drop_members(const renewal& what, nanoseconds now) {
  return std::erase_if(members, [&](const auto& one) {
           const bool is_self = one.first == what.self.id;
           return is_self ? what.leaves : one.second.until < now;
         }) != 0;
}

bool memory_leases::tables::give(shard& one, const std::string& to, std::uint64_t in) const {
  one.owner = to;
  ++one.fence;
  one.changed = in;
  return true;
}

lease_view memory_leases::tables::apply(const renewal& what) {
  const nanoseconds now = what.lease == forever ? nanoseconds(0) : clock();
  const auto before = members.find(what.self.id);
  if (before != members.end() && before->second.round > what.round)
    fail(database::failure::conflict, database::effect::none);

  const std::uint64_t next = version + 1;
  bool members_differ = drop_members(what, now);
  if (!what.leaves) {
    members_differ |=
        before == members.end() || before->second.row.is_leaving != what.self.is_leaving;
    const nanoseconds until = what.lease == forever ? nanoseconds::max() : now + what.lease;
    members[what.self.id] = {what.self, what.round, until};
  }
  std::array<std::uint64_t, shard_count> kept{};  // their fences, none of which is 0
  for (const held_shard& one : what.kept) kept.at(one.shard) = one.fence;
  bool owners_differ = false;
  for (std::uint32_t i = 0; i < shard_count; ++i) {
    shard& one = shards[i];
    if (one.owner.empty()) continue;
    const bool is_own = one.owner == what.self.id;
    const bool stays = is_own ? !what.leaves && kept[i] == one.fence
                              : !members_differ || members.contains(one.owner);
    if (!stays) owners_differ |= give(one, {}, next);
  }
  std::uint32_t left = what.leaves ? 0 : what.wanted;
  for (shard& one : shards) {
    if (left == 0) break;
    if (!one.owner.empty()) continue;
    owners_differ |= give(one, what.self.id, next);
    --left;
  }
  if (members_differ) members_changed = next;
  if (members_differ || owners_differ) version = next;
  lease_view view = view_for(what, now);
  view.has_changed = version == next;
  return view;
}

lease_view memory_leases::tables::view_for(const renewal& what, nanoseconds now) const {
  lease_view view;
  view.seen = version;
  if (members_changed > what.seen) view.members.emplace();
  for (const auto& [id, one] : members) {
    if (view.members) view.members->push_back(one.row);
    if (id != what.self.id && one.until != nanoseconds::max())
      view.next_end =
          std::min(view.next_end, std::chrono::duration_cast<milliseconds>(one.until - now));
  }
  for (std::uint32_t i = 0; i < shard_count; ++i) {
    const shard& one = shards[i];
    if (one.owner == what.self.id) view.held.push_back({i, one.fence});
    if (one.changed > what.seen) view.changed.push_back({i, one.owner, one.fence});
  }
  return view;
}

namespace {

bool happens(std::uint64_t one_in) { return one_in != 0 && kit::random_number() % one_in == 0; }

nanoseconds random_up_to(nanoseconds most) {
  if (most.count() <= 0) return nanoseconds(0);
  return nanoseconds(
      static_cast<std::int64_t>(kit::random_number() % static_cast<std::uint64_t>(most.count())));
}

class in_memory final : public lease_store {
 public:
  explicit in_memory(std::shared_ptr<tables> of) : of_(std::move(of)) {}

  task<> open(std::string) override {
    if (const nanoseconds most = check({}).delay_max; most.count() > 0)
      co_await sleep_for(random_up_to(most));
  }
  task<lease_view> renew(renewal what) override {
    const lease_faults faults = check(what.self.id);
    if (faults.delay_max.count() > 0) co_await sleep_for(random_up_to(faults.delay_max / 2));
    if (happens(faults.hangs)) co_await sleep_for(std::chrono::hours(1));
    if (happens(faults.refuses)) fail(database::failure::busy, database::effect::none);
    if (happens(faults.loses)) {
      lose(what, faults);
      fail(database::failure::lost, database::effect::unknown);
    }
    lease_view view;
    {
      std::lock_guard held(of_->mutex);
      view = of_->apply(what);
    }
    if (faults.delay_max.count() > 0) co_await sleep_for(random_up_to(faults.delay_max / 2));
    co_return view;
  }

 private:
  lease_faults check(const std::string& member) const {
    std::lock_guard held(of_->mutex);
    if (of_->away || of_->cut_off.contains(member))
      fail(database::failure::unreachable, database::effect::none);
    return of_->faults;
  }
  void lose(const renewal& what, const lease_faults& faults) const {
    switch (kit::random_number() % 3) {
      case 0:
        return;
      case 1: {
        std::lock_guard held(of_->mutex);
        of_->apply(what);
        return;
      }
      default:
        static_cast<void>(spawn(apply_late(of_, what, random_up_to(faults.late_max))));
    }
  }
  // A task, since the clock of the store is one of tasks.
  static task<> apply_late(std::shared_ptr<tables> of, renewal what, nanoseconds later) {
    co_await sleep_for(later);
    std::lock_guard held(of->mutex);
    try {
      of->apply(what);
    } catch (const database::error&) {
      // A later one was first.
    }
  }

  const std::shared_ptr<tables> of_;
};

}  // namespace

memory_leases::memory_leases(std::function<nanoseconds()> clock)
    : tables_(std::make_shared<tables>()) {
  tables_->clock = std::move(clock);
  if (!tables_->clock) tables_->clock = [] { return troupe::now(); };
}

std::unique_ptr<lease_store> memory_leases::store() const {
  return std::make_unique<in_memory>(tables_);
}

void memory_leases::set_faults(const lease_faults& now) const {
  std::lock_guard held(tables_->mutex);
  tables_->faults = now;
}
void memory_leases::set_away(bool away) const {
  std::lock_guard held(tables_->mutex);
  tables_->away = away;
}
void memory_leases::set_cut_off(const std::string& member, bool cut_off) const {
  std::lock_guard held(tables_->mutex);
  if (cut_off) {
    tables_->cut_off.insert(member);
  } else {
    tables_->cut_off.erase(member);
  }
}

std::vector<shard_row> memory_leases::shards() const {
  std::lock_guard held(tables_->mutex);
  std::vector<shard_row> all;
  for (std::uint32_t i = 0; i < shard_count; ++i)
    all.push_back({i, tables_->shards[i].owner, tables_->shards[i].fence});
  return all;
}
bool memory_leases::is_owner(const std::string& member, const held_shard& of) const {
  std::lock_guard held(tables_->mutex);
  const tables::shard& row = tables_->shards.at(of.shard);
  return row.owner == member && row.fence == of.fence;
}
std::vector<member_row> memory_leases::members() const {
  std::lock_guard held(tables_->mutex);
  std::vector<member_row> all;
  for (const auto& [id, one] : tables_->members) all.push_back(one.row);
  return all;
}

}  // namespace troupe::cluster
