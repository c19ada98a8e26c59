#include "cluster/leases/memory_leases.hpp"

#include <mutex>
#include <set>
#include <utility>

#include "cluster/leases/lease_book.hpp"
#include "kit/clock_and_random.hpp"
#include "troupe/database/error.hpp"
#include "troupe/runtime/here.hpp"
#include "troupe/task/timer.hpp"

namespace troupe::cluster {

using std::chrono::nanoseconds;

// Everything under one mutex; a renewal is done as a whole.
struct memory_leases::tables {
  mutable std::mutex mutex;
  std::function<nanoseconds()> clock;
  lease_faults faults;
  bool away = false;
  std::set<std::string> cut_off;
  lease_book book;

  lease_view apply(const renewal& renewal) {
    return book.apply(renewal, renewal.lease == forever ? nanoseconds(0) : clock());
  }
};

namespace {

using tables = memory_leases::tables;

[[noreturn]] void fail(database::failure kind, database::effect done) {
  throw database::error(kind, 0, "troupe: cluster: the store of leases in memory failed",
                        database::rule::other, done);
}

bool happens(std::uint64_t one_in) { return one_in != 0 && kit::random_number() % one_in == 0; }

nanoseconds random_up_to(nanoseconds most) {
  if (most.count() <= 0) return nanoseconds(0);
  return nanoseconds(
      static_cast<std::int64_t>(kit::random_number() % static_cast<std::uint64_t>(most.count())));
}

class in_memory final : public lease_store {
 public:
  explicit in_memory(std::shared_ptr<tables> shared) : tables_(std::move(shared)) {}

  task<> open(std::string) override {
    if (const nanoseconds most = check({}).delay_max; most.count() > 0)
      co_await sleep_for(random_up_to(most));
  }
  task<lease_view> renew(renewal renewal) override {
    const lease_faults faults = check(renewal.self.id);
    if (faults.delay_max.count() > 0) co_await sleep_for(random_up_to(faults.delay_max / 2));
    if (happens(faults.hangs)) co_await sleep_for(std::chrono::hours(1));
    if (happens(faults.refuses)) fail(database::failure::busy, database::effect::none);
    if (happens(faults.loses)) {
      lose(renewal, faults);
      fail(database::failure::lost, database::effect::unknown);
    }
    lease_view view;
    {
      std::lock_guard held(tables_->mutex);
      view = tables_->apply(renewal);
    }
    if (faults.delay_max.count() > 0) co_await sleep_for(random_up_to(faults.delay_max / 2));
    co_return view;
  }

 private:
  lease_faults check(const std::string& member) const {
    std::lock_guard held(tables_->mutex);
    if (tables_->away || tables_->cut_off.contains(member))
      fail(database::failure::unreachable, database::effect::none);
    return tables_->faults;
  }
  void lose(const renewal& renewal, const lease_faults& faults) const {
    switch (kit::random_number() % 3) {
      case 0:
        return;
      case 1: {
        std::lock_guard held(tables_->mutex);
        tables_->apply(renewal);
        return;
      }
      default:
        static_cast<void>(spawn(apply_late(tables_, renewal, random_up_to(faults.late_max))));
    }
  }
  // A task, since the clock of the store is one of tasks.
  static task<> apply_late(std::shared_ptr<tables> shared, renewal renewal, nanoseconds later) {
    co_await sleep_for(later);
    std::lock_guard held(shared->mutex);
    try {
      shared->apply(renewal);
    } catch (const database::error&) {
      // A later one was first.
    }
  }

  const std::shared_ptr<tables> tables_;
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
    all.push_back({i, tables_->book.shards[i].owner, tables_->book.shards[i].fence});
  return all;
}
bool memory_leases::is_owner(const std::string& member, const held_shard& shard) const {
  std::lock_guard held(tables_->mutex);
  const lease_book::shard& row = tables_->book.shards.at(shard.shard);
  return row.owner == member && row.fence == shard.fence;
}
std::vector<member_row> memory_leases::members() const {
  std::lock_guard held(tables_->mutex);
  std::vector<member_row> all;
  for (const auto& [id, member] : tables_->book.members) all.push_back(member.row);
  return all;
}

}  // namespace troupe::cluster
