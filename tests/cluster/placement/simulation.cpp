// Placement under seeds: nodes are killed, stopped and started, the store refuses, hangs, loses
// answers and does renewals late, nodes are cut off from it, and clocks are wrong. No shard has two
// nodes at any time, fences grow, and once there is calm all is balanced with as few moves as
// needed. What lacks a part of the protocol is found out.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/leases/memory_leases.hpp"
#include "cluster/placement/placement.hpp"
#include "kit/clock_and_random.hpp"
#include "support/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using troupe::cluster::held_shard;
using troupe::cluster::lease_store;
using troupe::cluster::lease_view;
using troupe::cluster::memory_leases;
using troupe::cluster::placement;
using troupe::cluster::placement_options;
using troupe::cluster::renewal;
using troupe::cluster::shard_count;

// What is left out of the protocol.
enum class mistake : std::uint8_t { none, no_margin, no_fence, no_round };

std::uint64_t up_to(std::uint64_t most) { return kit::random_number() % (most + 1); }
nanoseconds up_to(nanoseconds most) {
  return nanoseconds(static_cast<std::int64_t>(up_to(static_cast<std::uint64_t>(most.count()))));
}

// The store behind it, less what the mistake leaves out.
class mistaken final : public lease_store {
 public:
  mistaken(std::unique_ptr<lease_store> over, mistake made) : over_(std::move(over)), made_(made) {}
  task<> open(std::string name) override { return over_->open(std::move(name)); }
  task<lease_view> renew(renewal what) override {
    if (made_ == mistake::no_round) what.round = 1;
    if (made_ != mistake::no_fence) co_return co_await over_->renew(std::move(what));
    for (held_shard& one : what.kept) one.fence = fences_[one.shard];
    auto asks = over_->renew(std::move(what));
    lease_view view = co_await std::move(asks);
    for (held_shard& one : view.held) fences_[one.shard] = std::exchange(one.fence, 1);
    for (auto& one : view.changed) one.fence = 1;
    co_return view;
  }

 private:
  const std::unique_ptr<lease_store> over_;
  const mistake made_;
  std::array<std::uint64_t, shard_count> fences_{};
};

constexpr std::chrono::milliseconds lease = 6s;

// The nodes of a cluster, and what is seen of them.
class fleet {
 public:
  fleet(runtime& rt, mistake made)
      : rt_(rt), made_(made), rate_(some_rate()), leases_([this] { return clock(rate_); }) {}

  struct member {
    std::string id;
    double rate = 1;
    std::unique_ptr<placement> at;
    bool lives = true;
  };

  // Starts one more, as often as it takes: one that could not join is another one the next time.
  task<> add() {
    for (;;) {
      auto one = make();
      members_.push_back(one);
      bool joined = false;
      try {
        auto starts = one->at->start();
        co_await std::move(starts);
        joined = true;
      } catch (const error&) {
      }
      if (joined) co_return;
      kill(*one);
      co_await sleep_for(100ms);
    }
  }
  task<> stop(std::shared_ptr<member> one) {
    co_await one->at->stop(5s);
    one->lives = false;
  }
  void kill(member& one) {
    one.at->kill();
    one.lives = false;
  }
  // One that lives; null if there is none.
  std::shared_ptr<member> any() const {
    const auto all = living();
    return all.empty() ? nullptr : all[kit::random_number() % all.size()];
  }
  std::vector<std::shared_ptr<member>> living() const {
    std::vector<std::shared_ptr<member>> all;
    for (const auto& one : members_) {
      if (one->lives) all.push_back(one);
    }
    return all;
  }

  // Beside what each gain() looks at: a node that has a shard does not get it back unseen.
  void look_at_all() {
    std::array<bool, shard_count> taken{};
    for (const auto& one : living()) {
      const placement& at = *one->at;
      for (std::uint32_t i = 0; i < shard_count; ++i) {
        if (!at.is_mine(i)) continue;
        if (taken[i]) complain("shard " + std::to_string(i) + " has two nodes");
        taken[i] = true;
      }
    }
  }
  std::size_t owned() const {
    std::size_t count = 0;
    for (const auto& one : living()) count += owned_by(*one);
    return count;
  }
  void expect_balance(const char* when) {
    const std::size_t least = shard_count / living().size();
    for (const auto& one : living()) {
      const std::size_t has = owned_by(*one);
      if (has < least || has > least + 1)
        complain(std::string(when) + " " + one->id + " has " + std::to_string(has) + " of " +
                 std::to_string(living().size()) + " nodes");
      if (one->at->members().size() != living().size())
        complain(std::string(when) + " " + one->id + " does not know who is there");
    }
    if (owned() != shard_count)
      complain(std::string(when) + " " + std::to_string(owned()) + " shards have a node");
  }
  void expect(bool good, const std::string& what) {
    if (!good) complain(what);
  }
  static std::size_t owned_by(const member& one) {
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < shard_count; ++i) count += one.at->is_mine(i) ? 1u : 0u;
    return count;
  }

  const memory_leases& store() const { return leases_; }
  // How long a lease is at most, by the true time.
  nanoseconds lease_span() const {
    return nanoseconds(
        static_cast<std::int64_t>(static_cast<double>(nanoseconds(lease).count()) / rate_));
  }
  std::size_t moves = 0;
  // What one node tells the others.
  bool hints_come = true, hints_get_lost = true;
  std::string wrong;

 private:
  // Wrong by less than the margin in one lease, of the node and the store together.
  static double some_rate() { return 0.96 + 0.0001 * static_cast<double>(up_to(800)); }
  nanoseconds clock(double rate) const {
    return nanoseconds(static_cast<std::int64_t>(static_cast<double>(rt_.now().count()) * rate));
  }
  void complain(const std::string& what) {
    if (wrong.size() < 500) wrong += std::to_string(rt_.now() / 1ms) + " ms: " + what + "; ";
  }

  std::shared_ptr<member> make() {
    auto one = std::make_shared<member>();
    one->id = "node " + std::to_string(members_.size());
    one->rate = some_rate();
    placement_options chosen;
    chosen.lease = lease;
    chosen.margin = made_ == mistake::no_margin ? 0ms : 600ms;
    chosen.drain_max = 2s;
    chosen.clock = [this, rate = one->rate] { return clock(rate); };
    one->at = std::make_unique<placement>(rt_, std::make_unique<mistaken>(leases_.store(), made_),
                                          "shop", troupe::cluster::member_row{one->id, "some"},
                                          std::move(chosen), hooks_of(*one));
    return one;
  }
  placement::hooks hooks_of(member& one) {
    placement::hooks told;
    told.gained = [this, &one](const auto& shards) {
      for (const auto& [shard, fence] : shards) gain(one, shard, fence);
    };
    told.lost = [this](const auto& shards) {
      for (const std::uint32_t shard : shards) drained_by_[shard] = nullptr;
    };
    told.drain = [this, &one](std::vector<held_shard> shards, placement::release released) {
      return drain(one, std::move(shards), std::move(released));
    };
    told.changed = [this, &one] { tell_others(one); };
    return told;
  }
  void gain(const member& one, std::uint32_t shard, std::uint64_t fence) {
    ++moves;
    for (const auto& other : members_) {
      if (other->lives && other.get() != &one && other->at->is_mine(shard))
        complain("shard " + std::to_string(shard) + " of " + other->id + " went to " + one.id);
    }
    if (fence <= fences_[shard])
      complain("the fence of " + std::to_string(shard) + " went from " +
               std::to_string(fences_[shard]) + " to " + std::to_string(fence));
    if (drained_by_[shard] != nullptr && drained_by_[shard]->lives)
      complain("shard " + std::to_string(shard) + " went to " + one.id + " before it was drained");
    drained_by_[shard] = nullptr;
    fences_[shard] = fence;
  }
  // A part of them is at rest before the others.
  task<> drain(const member& one, std::vector<held_shard> shards, placement::release released) {
    for (const held_shard& each : shards) drained_by_[each.shard] = &one;
    const auto early = shards.begin() + static_cast<std::ptrdiff_t>(up_to(shards.size()));
    std::vector<held_shard> first(shards.begin(), early);
    co_await sleep_for(up_to(50ms));
    rests(one, first);
    released(std::move(first));
    const bool is_slow = kit::random_number() % 20 == 0;
    co_await sleep_for(up_to(is_slow ? 4s : 50ms));
    rests(one, shards);
  }
  void rests(const member& one, const std::vector<held_shard>& shards) {
    for (const held_shard& each : shards) {
      if (drained_by_[each.shard] == &one) drained_by_[each.shard] = nullptr;
    }
  }
  void tell_others(const member& one) {
    if (!hints_come) return;
    for (const auto& other : members_) {
      if (other.get() == &one || (hints_get_lost && kit::random_number() % 8 == 0)) continue;
      rt_.after(up_to(20ms), [other] { other->at->hurry(); });
    }
  }

  runtime& rt_;
  const mistake made_;
  const double rate_;
  const memory_leases leases_;
  std::vector<std::shared_ptr<member>> members_;
  std::array<std::uint64_t, shard_count> fences_{};
  std::array<const member*, shard_count> drained_by_{};
};

class troubles {
 public:
  troubles(runtime& rt, mistake made) : rt_(rt), all_(rt, made) {}

  // Returns what is wrong; "" for nothing.
  task<std::string> run() {
    const std::uint64_t nodes = 3 + up_to(4);
    future<> watches = rt_.spawn(watch());
    std::vector<future<>> starts;
    set_faults();
    for (std::uint64_t i = 0; i < nodes; ++i) {
      starts.push_back(rt_.spawn(all_.add()));
      co_await sleep_for(up_to(300ms));
    }
    for (auto& one : starts) co_await std::move(one);
    for (int i = 0; i < 8; ++i) {
      auto disturbs = disturb();
      co_await std::move(disturbs);
    }
    all_.store().set_faults({});
    all_.hints_get_lost = false;
    auto rests = rest();
    co_await std::move(rests);
    auto checks = check_moves();
    co_await std::move(checks);
    auto takes = check_take_over();
    co_await std::move(takes);
    auto ends = end();
    co_await std::move(ends);
    ends_ = true;
    co_await std::move(watches);
    co_return all_.wrong;
  }

 private:
  void set_faults() {
    troupe::cluster::lease_faults faults;
    faults.refuses = 15;
    faults.loses = 12;
    faults.late_max = 9s;
    faults.hangs = 40;
    faults.delay_max = 200ms;
    all_.store().set_faults(faults);
  }
  task<> watch() {
    while (!ends_ && all_.wrong.empty()) {
      all_.look_at_all();
      co_await sleep_for(700ms);
    }
  }
  task<> disturb() {
    const auto one = all_.any();
    switch (one == nullptr ? 5 : kit::random_number() % 6) {
      case 0:
        all_.kill(*one);
        break;
      case 1: {
        co_await all_.stop(one);
        break;
      }
      case 2:
        all_.store().set_away(true);
        co_await sleep_for(up_to(8s));
        all_.store().set_away(false);
        break;
      case 3:
        all_.store().set_cut_off(one->id, true);
        co_await sleep_for(up_to(10s));
        all_.store().set_cut_off(one->id, false);
        break;
      case 4:
        break;
      default: {
        auto adds = all_.add();
        co_await std::move(adds);
      }
    }
    co_await sleep_for(up_to(2s));
  }
  // Rows of those who were killed, or who joined without knowing it, run out.
  task<> rest() {
    while (all_.living().size() < 2) {
      auto adds = all_.add();
      co_await std::move(adds);
    }
    co_await sleep_for(lease + 9s);
    all_.expect_balance("after the troubles");
  }
  task<> check_moves() {
    const std::size_t before = all_.living().size();
    all_.moves = 0;
    all_.hints_come = kit::random_number() % 2 == 0;
    auto adds = all_.add();
    co_await std::move(adds);
    // Drains take up to 2 s, and with no hints each node sees a change after a third of a lease.
    co_await sleep_for(all_.hints_come ? 3s : 8s);
    all_.expect_balance("after a join");
    // What one more node needs, and no more.
    all_.expect(
        all_.moves >= shard_count / (before + 1) && all_.moves <= shard_count / (before + 1) + 1,
        "a join moved " + std::to_string(all_.moves) + " shards");
    all_.moves = 0;
    const auto one = all_.any();
    const std::size_t had = fleet::owned_by(*one);
    co_await all_.stop(one);
    co_await sleep_for(all_.hints_come ? 1s : 3s);
    all_.expect_balance("after a stop");
    all_.expect(all_.moves == had, "a stop of one that had " + std::to_string(had) + " moved " +
                                       std::to_string(all_.moves) + " shards");
  }
  task<> check_take_over() {
    if (all_.living().size() < 2) co_return;
    const auto one = all_.any();
    const std::size_t had = fleet::owned_by(*one);
    all_.moves = 0;
    all_.kill(*one);
    co_await sleep_for(all_.lease_span() + 1s);
    all_.expect(all_.owned() == shard_count, "after the lease of " + one->id + " " +
                                                 std::to_string(all_.owned()) +
                                                 " shards have a node");
    all_.expect(all_.moves == had, "an end of one that had " + std::to_string(had) + " moved " +
                                       std::to_string(all_.moves) + " shards");
  }
  task<> end() {
    for (const auto& one : all_.living()) {
      co_await all_.stop(one);
    }
    all_.expect(all_.store().members().empty(), "members are left");
    for (const auto& row : all_.store().shards())
      all_.expect(row.owner.empty(), "shard " + std::to_string(row.shard) + " is left");
  }

  runtime& rt_;
  fleet all_;
  bool ends_ = false;
};

std::string what_is_wrong(std::uint64_t seed, mistake made) {
  runtime rt({.policy = policy::simulated, .seed = seed});
  // Made in the task, where the seed chooses.
  const auto all = [&rt, made]() -> task<std::string> {
    troubles some(rt, made);
    auto runs = some.run();
    co_return co_await std::move(runs);
  };
  future<std::string> result = rt.spawn(all());
  rt.run();
  return result.get();
}

TEST(placement_simulation, no_shard_has_two_nodes_and_calm_brings_balance) {
  for_each_seed(chosen_seeds(slow ? 20 : 200),
                [](std::uint64_t seed) { EXPECT_EQ(what_is_wrong(seed, mistake::none), ""); });
}

void expect_found(mistake made) {
  test::expect_found([made](std::uint64_t seed) { return what_is_wrong(seed, made); });
}
TEST(placement_simulation, a_lease_without_a_margin_is_found) { expect_found(mistake::no_margin); }
TEST(placement_simulation, an_owner_without_a_new_fence_is_found) {
  expect_found(mistake::no_fence);
}
TEST(placement_simulation, a_store_that_lets_late_renewals_win_is_found) {
  expect_found(mistake::no_round);
}

}  // namespace
}  // namespace troupe::test
