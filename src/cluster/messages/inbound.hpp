// inbound: the messages of other nodes to actors of this one.
//
// Invariants
//   N3  A handler begins, and its answer is given, only while the node owns the shard under the
//       fence that it had when the actor was made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cluster/actors/durable_actors.hpp"
#include "cluster/core/frames.hpp"
#include "cluster/core/node_core.hpp"
#include "observe/numbers/sharded.hpp"
#include "troupe/sync/semaphore.hpp"

namespace troupe::cluster::parts {

// Thread: any.
class inbound {
 public:
  inbound(node_core& core, durable_actors& durable)
      : core_(core),
        durable_(durable),
        permits_(std::make_shared<semaphore>(core.chosen().served_max)) {}

  // Takes the messages that are sent to this node, from now on.
  task<> open();
  // Gives a request to its actor. Returns the frame with the reason why it did not run; "": its
  // actor answers.
  std::string serve(const state_ref& node, const request_frame& request, const std::string& reply,
                    semaphore::permit permit);
  std::uint64_t served_count() const noexcept { return served_.get(); }

 private:
  static task<> take(inbound* self, state_ref keeps, incoming message);
  bool take_now(const state_ref& node, const incoming& message);
  std::string dispatch(const state_ref& node, const request_frame& request,
                       const std::string& reply, semaphore::permit permit);

  node_core& core_;
  durable_actors& durable_;
  const std::shared_ptr<semaphore> permits_;  // of handlers that run
  observe::sharded_counter served_;
};

}  // namespace troupe::cluster::parts
