// node: this program's part of a cluster of programs that share their actors.
#pragma once

#include "troupe/base/language.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/cluster/calls.hpp"
#include "troupe/cluster/error.hpp"
#include "troupe/cluster/home.hpp"
#include "troupe/cluster/kind.hpp"
#include "troupe/cluster/options.hpp"
#include "troupe/cluster/ref.hpp"
#include "troupe/cluster/topic.hpp"
#include "troupe/durable/store.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/sync/channel.hpp"
#include "troupe/task/task.hpp"

namespace troupe::cluster {

class simulation;

// A node of the cluster. When its program is started again, the node has another id.
struct member {
  std::string id;
  std::string name;
  auto operator<=>(const member&) const = default;
};
struct member_event {
  bool joined = false;  // otherwise it has left, or its lease has expired
  member node;
};

// Numbers of a node, at one moment.
struct counts {
  std::size_t shards = 0;   // that this node owns
  std::size_t members = 0;  // of the cluster
  std::size_t actors = 0;   // in memory here
  union {
    std::uint64_t created = 0;  // actors
    [[deprecated("its name is `created`")]] std::uint64_t made;
  };
  union {
    std::uint64_t unloaded = 0;  // actors, since they were idle or too many
    [[deprecated("its name is `unloaded`")]] std::uint64_t put_away;
  };
  std::uint64_t local = 0;       // messages for actors that were here
  std::uint64_t sent = 0;        // messages to other nodes
  std::uint64_t served = 0;      // messages of other nodes
  std::uint64_t sent_again = 0;  // since the actor had moved
  std::uint64_t failed = 0;      // asks of other nodes, for another reason than their handlers
  std::size_t waiting = 0;       // messages that wait for other nodes
  std::uint64_t renewals = 0;    // of the leases of this node, since it began to join
  std::uint64_t failed_renewals = 0;
  std::uint64_t shards_lost = 0;  // that it gave up, since it could not renew or drain in time
  bool is_connected = false;      // to a NATS server; always when it is alone
};

namespace parts {

struct setup {
  std::vector<class_table> kinds;
  std::vector<exception_entry> exceptions;
  std::vector<durable::parts::kind_table> durable_kinds;
  void add(class_table table) { kinds.push_back(std::move(table)); }
  void add(exception_entry entry) { exceptions.push_back(std::move(entry)); }
  void add(durable::parts::kind_table table) { durable_kinds.push_back(std::move(table)); }
};
template <class T>
concept setting = std::same_as<T, class_table> || std::same_as<T, exception_entry> ||
    std::same_as<T, durable::parts::kind_table>;

// Throws usage_error before the node has joined, and if it has no durable classes.
const durable::store& store_of(const node_state& on);

// Shared by all copies of a node; its destructor makes the node leave.
class node_owner {
 public:
  explicit node_owner(state_ref node) noexcept : node_(std::move(node)) {}
  node_owner(const node_owner&) = delete;
  node_owner& operator=(const node_owner&) = delete;
  ~node_owner();
  const state_ref& state() const noexcept { return node_; }

 private:
  const state_ref node_;
};

}  // namespace parts

// A node of a cluster. Each actor has a class and a key, and is on one node at a time: the node
// that owns its shard. Messages reach it wherever it is. Without servers the node is alone and owns
// all shards.
//
// It joins at once, and calls wait until it has joined. Copies are the same node. When the last
// copy is destroyed, it leaves as by stop(). With servers it keeps the program alive until then.
//
// Thread: any. Errors: option_error for options that make no sense, and for two classes of one
// name. Lifetime: the runtime must live as long.
//
// Example (declarations):
//     struct Cart {
//       std::vector<std::string> items;
//       std::size_t add(std::string item) {
//         items.push_back(std::move(item));
//         return items.size();
//       }
//     };
//     troupe::task<> shop(troupe::runtime& rt) {
//       troupe::cluster::node node(rt, {.name = "shop"},
//                                  troupe::cluster::kind<Cart, &Cart::add>());
//       std::cout << co_await node.get<Cart>("alice").ask<&Cart::add>("pen") << '\n';  // 1
//       co_await node.stop();
//     }
class node {
 public:
  template <parts::setting... Settings>
  node(runtime& on, options chosen, Settings... settings) {
    parts::setup all;
    (all.add(std::move(settings)), ...);
    open(on, std::move(chosen), std::move(all));
  }
  // A node of a cluster that is simulated in this program.
  template <parts::setting... Settings>
  node(runtime& on, const simulation& simulated, options chosen, Settings... settings) {
    parts::setup all;
    (all.add(std::move(settings)), ...);
    open_in(on, simulated, std::move(chosen), std::move(all));
  }

  // Completes when the node has joined. Throws the error of the first attempt if that fails; the
  // node keeps trying.
  task<> ready() const;

  // The actor of that class and key. Cost: some ns. Errors: usage_error if the node was not given
  // the class, and for a key of more than 65,535 bytes.
  template <class T>
  ref<T> get(std::string_view key) const {
    return ref<T>::at(state(), key);
  }
  // The only actor of its class.
  template <class T>
  ref<T> single() const {
    return ref<T>::at(state(), {});
  }
  // The durable actor of that class and key (troupe/durable/store.hpp), whose state and mail are in
  // the database. Each commit checks in its transaction that this node still owns the shards of the
  // changed actors. Errors: usage_error before ready(), and for a class that the node was not given
  // as durable::kind<T, Methods...>().
  template <class T>
  durable::ref<T> get_durable(std::string_view key) const {
    return parts::store_of(*state()).template get<T>(key);
  }
  // The actor of class T that belongs to that node: each node has one such actor.
  template <class T>
  ref<T> on(const member& where) const {
    const parts::class_table& kind =
        parts::table_of(*state(), &durable::parts::class_tag<T>, base::type_name<T>());
    return ref<T>(state(), {&kind, {}, parts::own_shard, where.id});
  }

  // Publishes a value to all present subscribers of the topic, on any node, at most once. The name
  // of a topic has letters, digits, `-`, `_` and single dots. Waits while too many bytes wait to be
  // sent.
  // Errors: usage_error for another name; error: unreachable, too_large and stopped.
  template <durable::storable T>
  task<> publish(std::string topic, const T& value) const {
    return parts::publish(state(), std::move(topic),
                          parts::topic_frame(parts::topic_shape_of<T>(), durable::encode(value)));
  }
  // Completes when the subscription receives all values that are published from then on. Values of
  // another type are counted, and not returned. Errors: usage_error for another name; error:
  // unreachable, stopped.
  template <durable::storable T>
  task<topic_stream<T>> subscribe(std::string topic, topic_options chosen) const {
    return open_topic<T>(state(), std::move(topic), std::move(chosen));
  }
  // An overload: GCC 12 destroys the members of a temporary aggregate twice if it is part of a
  // co_await expression, and a default argument is such a temporary.
  template <durable::storable T>
  task<topic_stream<T>> subscribe(std::string topic) const {
    return open_topic<T>(state(), std::move(topic), topic_options());
  }

  const member& self() const noexcept;
  // The members that this node sees, by id.
  std::vector<member> members_now() const;
  // A stream of changes of the membership; it begins with a `joined` for each member that is there.
  // A reader that is too slow misses the oldest events.
  channel<member_event> members() const;

  // Hands its shards over when their handlers have ended, and leaves. Afterwards messages fail with
  // failure::stopped.
  task<> stop() const;
  // Thread: any. Cost: some us.
  cluster::counts counts() const;

 private:
  friend class simulation;
  template <class T>
  static task<topic_stream<T>> open_topic(parts::state_ref on, std::string topic,
                                          topic_options chosen) {
    auto reader = std::make_shared<parts::topic_reader_of<T>>(chosen.waiting_max);
    topic_stream<T> stream(on, reader);
    auto subscribes = parts::subscribe(on, std::move(topic), std::move(chosen.group), reader);
    co_await std::move(subscribes);
    co_return stream;
  }
  void open(runtime& on, options chosen, parts::setup all);
  void open_in(runtime& on, const simulation& simulated, options chosen, parts::setup all);
  const parts::state_ref& state() const noexcept { return owner_->state(); }

  std::shared_ptr<parts::node_owner> owner_;
};

}  // namespace troupe::cluster
