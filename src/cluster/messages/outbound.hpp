// outbound: the messages of this node to actors on other nodes.
//
// Invariants
//   N4  A message to another node is sent again only if it is known that it did not run.
// The whole protocol: docs/protocols/cluster.md.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "cluster/actors/local_actors.hpp"
#include "cluster/core/node_core.hpp"
#include "cluster/members/membership.hpp"
#include "cluster/messages/inbound.hpp"
#include "cluster/messages/waiting_line.hpp"
#include "cluster/transport/bundle.hpp"

namespace troupe::cluster::parts {

class outbound;

// A message to an actor that is not here, until it was sent and answered.
struct outgoing {
  outgoing() noexcept {}  // no aggregate, since g++ 12 destroys those twice in co_await expressions
  address target;
  const method_entry* method = nullptr;
  bytes arguments;
  std::unique_ptr<answer_to> answer;  // null: a tell
  std::uint64_t number = 0;           // its place in the order of its route
  std::int64_t deadline_ns = 0;       // in the time of the runtime
  bool is_callers_deadline = false;
  bool may_have_run = false;
  std::string trace;
};

// Tells to the actors of one shard that could not be sent at once, in the order in which they came,
// with no ask between them. They are one message to the route, which sends one batch after the
// other.
struct tell_line {
  // Tells of about the same deadline.
  struct batch {
    explicit batch(std::int64_t deadline) noexcept : deadline_ns(deadline) {}
    waiting_bundle tells;
    std::int64_t deadline_ns;  // in the time of the runtime
  };
  explicit tell_line(std::uint32_t its_shard) : shard(its_shard) {}
  // `left`: until the deadline, from now on.
  void add(std::string_view frame, std::int64_t deadline_ns, std::chrono::nanoseconds left);

  const std::uint32_t shard;
  std::deque<batch> batches;  // guarded by the lock of the shard
};

// Where tells to one shard go: the subject of its owner, made once for each owner.
struct tell_subject {
  std::shared_ptr<const member_row> owner;
  std::string subject;
};

// Sends the messages of this node to the actors of one shard, in order.
class route {
 public:
  static constexpr bool reentrant = true;
  route(std::weak_ptr<node_state> node, outbound& out) noexcept
      : node_(std::move(node)), out_(out) {}
  task<> send(std::unique_ptr<outgoing> message);
  task<> send_tells(std::shared_ptr<tell_line> tells);

 private:
  const std::weak_ptr<node_state> node_;
  outbound& out_;  // while node_ is there
  std::uint64_t count_ = 0;
  waiting_line line_;
};

// Thread: any.
class outbound {
 public:
  outbound(node_core& core, local_actors& actors, membership& members, inbound& inbound) noexcept
      : core_(core), actors_(actors), members_(members), inbound_(inbound) {}

  // Errors: error(stopped), error(full), thrown for a tell and otherwise given to the asker.
  void send(std::unique_ptr<outgoing> message);
  // At once where that is possible. Errors: as send.
  void tell(std::uint32_t shard, std::string_view frame);

 private:
  friend class route;

  // Of one shard. Guarded by the lock of the shard (local_actors::lock).
  struct lane {
    troupe::ref<route> out;
    tell_subject subject;              // where the last tell went
    std::shared_ptr<tell_line> tells;  // the last of them, which takes more; null: there is none
  };

  troupe::ref<route>& route_of(lane& shard_lane);
  task<> deliver(std::unique_ptr<outgoing> message, waiting_line& line);
  task<> attempt(outgoing& message, waiting_line& line);
  task<std::string> next_owner(outgoing& message, waiting_line& line,
                               std::chrono::milliseconds pause);
  task<bool> try_once(outgoing& message, std::string owner);
  bool give_here(outgoing& message);
  bool settle(outgoing& message, std::string_view answer);
  std::string frame_of(const outgoing& message) const;

  // Some tells of a batch, in one message to their owner. `bytes` point into the batch.
  struct tell_part {
    std::string_view bytes;
    std::size_t count;
  };

  const std::string* subject_of_owner(std::uint32_t shard, tell_subject& known);
  tell_part next_part(const std::string& subject, const waiting_bundle& tells) const;
  void queue_tell(lane& shard_lane, std::uint32_t shard, std::string_view frame);
  void add_tell(lane& shard_lane, std::uint32_t shard, std::string_view frame);
  task<> deliver_tells(std::shared_ptr<tell_line> tells, waiting_line& line, std::uint64_t number);
  bool take_tells(tell_line& tells, std::deque<tell_line::batch>& into);
  bool send_part(std::uint32_t shard, tell_subject& subject, waiting_bundle& tells);
  task<> try_first(tell_line::batch& batch, std::uint32_t shard);
  task<> attempt_tell(std::string frame, std::uint32_t shard);
  bool tell_here(std::string_view frame);

  node_core& core_;
  local_actors& actors_;
  membership& members_;
  inbound& inbound_;
  std::array<lane, own_shard + 1> lanes_;
};

}  // namespace troupe::cluster::parts
