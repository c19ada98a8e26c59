// The work of a node, in numbers, and which node owns which shards: in the summary of its runtime
// and in /metrics, and the part of the page about the cluster.
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/node/node_state.hpp"

namespace troupe::cluster::parts {
namespace {

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
     counter_of<&count_of<&cluster_counts::created>>("created", "Actors that were created here."),
     counter_of<&count_of<&cluster_counts::unloaded>>(
         "unloaded", "Actors that were unloaded, since they were idle or too many."),
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

// `owners` by shard, as indexes of the list of members, or none; in runs of shards that follow
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
  const local_actors::actor_counts& actors = actors_.counts();
  now.actors = actors.actors.load(relaxed);
  now.created = actors.created.load(relaxed);
  now.unloaded = actors.unloaded.load(relaxed);
  now.local = actors.messages.get();
  const traffic_counts& traffic = core_.traffic();
  now.sent = traffic.sent.get();
  now.sent_again = traffic.sent_again.load(relaxed);
  now.failed = traffic.failed.load(relaxed);
  now.waiting = traffic.waiting.load(relaxed);
  now.served = inbound_.served_count();
  now.is_connected = core_.is_connected();
  const placement_counts of_leases = core_.owners().counts();
  now.renewals = of_leases.renewals;
  now.failed_renewals = of_leases.failures;
  now.shards_lost = of_leases.lost;
  now.members = members_.size();
  if (core_.stage().has_joined()) {
    for (std::uint32_t shard = 0; shard < shard_count; ++shard)
      now.shards += core_.owners().is_mine(shard);
  }
  return now;
}

void node_state::show() {
  const std::weak_ptr<const node_state> self = weak_from_this();
  shown_ = observing::components_of(core_.on())
               ->add({"cluster", "node", core_.self().name,
                      [self](observe::row_sink& sink, const std::vector<std::string>& labels) {
                        if (const std::shared_ptr<const node_state> node = self.lock())
                          sink.add(node_numbers, labels,
                                   {node->counts(), node->core().stage().has_joined()});
                      },
                      [self](observing::json_text& text) {
                        if (const std::shared_ptr<const node_state> node = self.lock())
                          node->write_members(text);
                      }});
}

void node_state::write_members(observing::json_text& text) const {
  text.member("id", core_.self().id).member("of", core_.chosen().cluster);
  text.member("alone", core_.is_alone() ? 1 : 0);
  const ownership& owned = core_.owners();
  const std::string last_failure = owned.last_failure();
  const std::vector<member_row> members = owned.members();
  std::map<std::string_view, int> places;
  for (std::size_t i = 0; i < members.size(); ++i) places[members[i].id] = static_cast<int>(i);
  std::array<int, shard_count> owners;
  std::vector<std::size_t> shards(members.size());
  for (std::uint32_t shard = 0; shard < shard_count; ++shard) {
    const auto owner = owned.owner(shard);
    const auto place = owner == nullptr ? places.end() : places.find(owner->id);
    owners.at(shard) = place == places.end() ? nobody : place->second;
    if (place != places.end()) ++shards[static_cast<std::size_t>(place->second)];
  }
  if (!last_failure.empty()) text.member("last_failure", last_failure);
  text.key("nodes").open('[');
  for (std::size_t i = 0; i < members.size(); ++i) {
    text.open('{').member("name", members[i].name).member("id", members[i].id);
    if (!members[i].page.empty()) text.member("page", members[i].page);
    text.member("leaving", members[i].is_leaving).member("shards", shards[i]).close('}');
  }
  text.close(']');
  write_owners(text, owners);
}

}  // namespace troupe::cluster::parts
