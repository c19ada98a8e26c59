// What a node has done, in numbers, and who owns what: in the summary of its runtime, from which
// /metrics is made (src/observe_page/metrics.cpp), and the part of the page about the cluster.
#include <array>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/node/node_state.hpp"

namespace troupe::cluster::parts {
namespace {

std::string text_of(const std::exception_ptr& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "unknown";
  }
}

constexpr int nobody = -1;

// `owners` by shard, as indexes of the list of members, or nobody; in runs of shards that follow
// each other: owner, count, owner, count.
void write_owners(observing::json_text& to, const std::array<int, shard_count>& owners) {
  to.key("owners").open('[');
  for (std::size_t begin = 0, end = 0; begin < owners.size(); begin = end) {
    while (end < owners.size() && owners.at(end) == owners.at(begin)) ++end;
    to.value(owners.at(begin)).value(end - begin);
  }
  to.close(']');
}

}  // namespace

cluster::counts node_state::counts() const {
  cluster::counts now;
  now.actors = counts_.actors.load(relaxed);
  now.made = counts_.made.load(relaxed);
  now.put_away = counts_.put_away.load(relaxed);
  now.local = counts_.local.load(relaxed);
  now.sent = counts_.sent.load(relaxed);
  now.served = counts_.served.load(relaxed);
  now.sent_again = counts_.sent_again.load(relaxed);
  now.failed = counts_.failed.load(relaxed);
  now.waiting = counts_.waiting.load(relaxed);
  now.is_connected = is_alone_ || way_->is_connected();
  std::lock_guard held(mutex_);
  const placement_counts of_leases = placement_->counts();
  now.renewals = of_leases.renewals;
  now.failed_renewals = of_leases.failures;
  now.shards_lost = of_leases.lost;
  now.members = members_.size();
  if (has_joined_) {
    for (std::uint32_t shard = 0; shard < shard_count; ++shard)
      now.shards += placement_->is_mine(shard);
  }
  return now;
}

void node_state::show() {
  const std::weak_ptr<const node_state> self = weak_from_this();
  shown_ = observing::components_of(on_)->add(
      {"cluster", "node", self_.name, [self](observing::json_text& to) {
         if (const std::shared_ptr<const node_state> here = self.lock()) here->write_numbers(to);
       }});
}

void node_state::write_numbers(observing::json_text& to) const {
  const cluster::counts now = counts();
  to.member("id", self_.id).member("of", chosen_.cluster);
  to.member("alone", is_alone_ ? 1 : 0).member("joined", has_joined_ ? 1 : 0);
  to.member("connected", now.is_connected ? 1 : 0);
  to.member("shards", now.shards).member("members", now.members);
  to.member("actors", now.actors).member("made", now.made).member("put_away", now.put_away);
  to.member("local", now.local).member("sent", now.sent).member("served", now.served);
  to.member("sent_again", now.sent_again).member("failed", now.failed);
  to.member("waiting", now.waiting);
  to.member("renewals", now.renewals).member("failed_renewals", now.failed_renewals);
  to.member("shards_lost", now.shards_lost);
  write_members(to);
}

void node_state::write_members(observing::json_text& to) const {
  std::string last_failure;
  std::vector<member_row> members;
  std::map<std::string_view, int> places;
  std::array<int, shard_count> owners;
  std::vector<std::size_t> shards;
  {
    std::lock_guard held(mutex_);
    last_failure = failed_ != nullptr ? text_of(failed_) : placement_->counts().last_failure;
    members = placement_->members();
    shards.resize(members.size());
    for (std::size_t i = 0; i < members.size(); ++i) places[members[i].id] = static_cast<int>(i);
    for (std::uint32_t shard = 0; shard < shard_count; ++shard) {
      const auto owner = placement_->owner(shard);
      const auto place = owner == nullptr ? places.end() : places.find(owner->id);
      owners.at(shard) = place == places.end() ? nobody : place->second;
      if (place != places.end()) ++shards[static_cast<std::size_t>(place->second)];
    }
  }
  if (!last_failure.empty()) to.member("last_failure", last_failure);
  to.key("nodes").open('[');
  for (std::size_t i = 0; i < members.size(); ++i) {
    to.open('{').member("name", members[i].name).member("id", members[i].id);
    to.member("leaving", members[i].is_leaving).member("shards", shards[i]).close('}');
  }
  to.close(']');
  write_owners(to, owners);
}

}  // namespace troupe::cluster::parts
