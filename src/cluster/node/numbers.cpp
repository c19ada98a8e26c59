// What a node has done, in numbers, and which node owns which shards: in the summary of its runtime
// and in /metrics, and the part of the page about the cluster.
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

struct node_numbers_now {
  cluster::counts counts;
  bool has_joined = false;
};
using cluster_counts = cluster::counts;
template <auto Member>
auto count_of(const node_numbers_now& now) {
  return now.counts.*Member;
}

using observe::counter_of;
using observe::gauge_of;
using observe::in_summary;
const observe::number_table<node_numbers_now> node_numbers{
    "troupe_cluster",
    {"runtime", "node"},
    {gauge_of<&node_numbers_now::has_joined>("joined", "1 if the node has joined."),
     gauge_of<&count_of<&cluster_counts::is_connected>>(
         "connected", "1 if the node has a connection to a NATS server, or is alone."),
     gauge_of<&count_of<&cluster_counts::shards>>("shards", "Shards that this node owns."),
     gauge_of<&count_of<&cluster_counts::members>>("members", "Nodes of the cluster."),
     gauge_of<&count_of<&cluster_counts::actors>>("actors",
                                                  "Actors of the cluster in memory here."),
     counter_of<&count_of<&cluster_counts::made>>("made", "Actors that were made here."),
     counter_of<&count_of<&cluster_counts::put_away>>(
         "put_away", "Actors that were unloaded, since they were idle or too many."),
     in_summary("local", counter_of<&count_of<&cluster_counts::local>>(
                             "local_messages", "Messages for actors that were here.")),
     in_summary("sent", counter_of<&count_of<&cluster_counts::sent>>("sent_messages",
                                                                     "Messages to other nodes.")),
     in_summary("served", counter_of<&count_of<&cluster_counts::served>>(
                              "served_messages", "Messages of other nodes.")),
     counter_of<&count_of<&cluster_counts::sent_again>>(
         "sent_again", "Messages that were sent once more, since the actor had moved."),
     in_summary(
         "failed",
         counter_of<&count_of<&cluster_counts::failed>>(
             "failed_messages",
             "Messages to other nodes that failed, for another reason than their handlers.")),
     in_summary("waiting", gauge_of<&count_of<&cluster_counts::waiting>>(
                               "waiting_messages", "Messages that wait for other nodes.")),
     counter_of<&count_of<&cluster_counts::renewals>>("renewals",
                                                      "Renewals of the leases of this node."),
     counter_of<&count_of<&cluster_counts::failed_renewals>>("failed_renewals",
                                                             "Renewals that failed."),
     in_summary("shards_lost",
                counter_of<&count_of<&cluster_counts::shards_lost>>(
                    "lost_shards",
                    "Shards that were given up, since they could not be renewed or drained in "
                    "time."))}};

constexpr int nobody = -1;

// `owners` by shard, as indexes of the list of members, or nobody; in runs of shards that follow
// each other: owner, count, owner, count.
void write_owners(observing::json_text& text, const std::array<int, shard_count>& owners) {
  text.key("owners").open('[');
  for (std::size_t begin = 0, end = 0; begin < owners.size(); begin = end) {
    while (end < owners.size() && owners.at(end) == owners.at(begin)) ++end;
    text.value(owners.at(begin)).value(end - begin);
  }
  text.close(']');
}

}  // namespace

cluster::counts node_state::counts() const {
  cluster::counts now;
  now.actors = counts_.actors.load(relaxed);
  now.made = counts_.created.load(relaxed);
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
      {"cluster", "node", self_.name,
       [self](observe::row_sink& sink, const std::vector<std::string>& labels) {
         const std::shared_ptr<const node_state> node = self.lock();
         if (node != nullptr) sink.add(node_numbers, labels, {node->counts(), node->has_joined()});
       },
       [self](observing::json_text& to) {
         if (const std::shared_ptr<const node_state> node = self.lock()) node->write_members(to);
       }});
}

bool node_state::has_joined() const {
  std::lock_guard held(mutex_);
  return has_joined_;
}

void node_state::write_members(observing::json_text& text) const {
  text.member("id", self_.id).member("of", chosen_.cluster).member("alone", is_alone_ ? 1 : 0);
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
  if (!last_failure.empty()) text.member("last_failure", last_failure);
  text.key("nodes").open('[');
  for (std::size_t i = 0; i < members.size(); ++i) {
    text.open('{').member("name", members[i].name).member("id", members[i].id);
    text.member("leaving", members[i].is_leaving).member("shards", shards[i]).close('}');
  }
  text.close(']');
  write_owners(text, owners);
}

}  // namespace troupe::cluster::parts
