// node_state: the state that the copies of a node share. It puts the parts of a node together,
// joins with them, and ends them in order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cluster/actors/durable_actors.hpp"
#include "cluster/actors/local_actors.hpp"
#include "cluster/core/node_core.hpp"
#include "cluster/members/membership.hpp"
#include "cluster/messages/inbound.hpp"
#include "cluster/messages/outbound.hpp"
#include "cluster/topics/topic_table.hpp"
#include "runtime/observing/numbers/component_list.hpp"
#include "troupe/cluster/node.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/task/event.hpp"

namespace troupe::cluster::parts {

// Thread: any.
class node_state : public std::enable_shared_from_this<node_state> {
 public:
  node_state(runtime& on, options chosen, setup with);
  node_state(const node_state&) = delete;
  node_state& operator=(const node_state&) = delete;
  ~node_state();

  // Joins, in a task of its own, again and again until it has succeeded.
  void begin(node_means with);
  task<> ready();
  static task<> stop(state_ref self);
  // As a crash does, for tests.
  void kill() noexcept;
  // Releases the local actors, which keep the node.
  void let_go() noexcept;

  node_core& core() noexcept { return core_; }
  const node_core& core() const noexcept { return core_; }
  membership& members() noexcept { return members_; }
  local_actors& actors() noexcept { return actors_; }
  const durable_actors& durable() const noexcept { return durable_; }
  outbound& out() noexcept { return outbound_; }
  topic_table& topics() noexcept { return topics_; }
  cluster::counts counts() const;

 private:
  // The steps that are done. The next attempt does not do them again: a subject that is taken twice
  // would be handled twice.
  struct join_progress {
    bool takes_own = false, takes_common = false, has_store = false;
  };

  static task<> join(state_ref self);
  task<> attempt_to_join(join_progress& done);
  task<> take_changes();
  void begin_sweeps();
  task<> end_way(std::int64_t until_ns);
  placement::hooks hooks();
  void gained(const std::vector<held_shard>& shards);
  void lost(const std::vector<std::uint32_t>& shards);
  void lose_all();
  task<> drain(std::vector<held_shard> shards, placement::release released);
  std::vector<held_shard> hand_over(const std::vector<held_shard>& shards, bool closes);
  // Until no actor that only this node has is at work.
  task<> rest(std::int64_t until_ns);
  void end_watchers() noexcept;
  // Makes the other nodes look at the owners of shards at once.
  void tell_others() noexcept;
  void show();
  void write_members(observing::json_text& text) const;

  node_core core_;
  membership members_;
  local_actors actors_;
  durable_actors durable_;
  inbound inbound_;
  outbound outbound_;
  topic_table topics_;
  event joined_or_failed_;
  timer sweeper_;
  observing::component_list::entry shown_;  // last: it is destroyed first
};

}  // namespace troupe::cluster::parts
