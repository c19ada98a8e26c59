// topic_core: the part of a topic that does not depend on the type of its values.
//
// Invariants, all under the mutex
//   T1  a subscription is in `order_` exactly while it is in `all_`.
//   T2  `snapshot_` is null, or has the subscriptions of `order_` in their order.
//   T3  no user code runs under the mutex, destructors included.
//
// Rejected: a list that is copied for each change. Then 10,000 subscribers cost 50 million copies
// of a shared_ptr before the first value is published, and as many when they end.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "troupe/actor/supervision.hpp"
#include "troupe/base/intrusive_list.hpp"
#include "troupe/base/small_mutex.hpp"
#include "troupe/kit/actors/end_watch.hpp"
#include "troupe/task/future.hpp"

namespace troupe {

// A topic's gauges, and its counters since the beginning.
//
// Example:
//     struct Display {
//       void show(double) {}
//     };
//     troupe::runtime rt;
//     troupe::topic<double> prices;
//     prices.subscribe<&Display::show>(rt.spawn<Display>());
//     prices.publish(9.5);
//     std::cout << prices.counts().told << '\n';  // 1
//     rt.run();
struct topic_counts {
  std::size_t subscribers = 0;
  std::uint64_t published = 0;
  std::uint64_t told = 0;    // messages that were sent to subscribers
  std::uint64_t missed = 0;  // those that a full mailbox refused
};

namespace kit {

// A method of an actor: each may subscribe once.
struct subscription_key {
  const void* actor = nullptr;  // identifies it: the subscription keeps the actor alive
  const char* method = nullptr;
  bool operator==(const subscription_key&) const noexcept = default;
};
struct subscription_key_hash {
  std::size_t operator()(const subscription_key& key) const noexcept;
};

// The derived struct has the function that sends a value by a tell of the method.
struct subscription : std::enable_shared_from_this<subscription> {
  subscription_key key;
  std::uint64_t number = 0;  // differs from the number of a later subscription of the same key
  std::shared_ptr<end_watch> watch;
  base::list_link<subscription> link;
};

// Thread: any. A change costs the same with any number of subscriptions.
class topic_core {
 public:
  using list = std::vector<std::shared_ptr<subscription>>;

  // Returns false if the key is there already. `ends` is the future of the actor's end, which
  // removes the subscription.
  static bool add(const std::shared_ptr<topic_core>& self,
                  const std::shared_ptr<subscription>& added, future<ended> ends);
  // With number 0: whichever subscription has the key. Returns false if there is none.
  bool remove(const subscription_key& key, std::uint64_t number);
  // The subscriptions of this instant, oldest first. Cost: the first call after a change takes
  // each of them.
  std::shared_ptr<const list> begin_publishing();
  void end_publishing(std::size_t told, std::size_t missed) noexcept;
  topic_counts counts() const noexcept;

 private:
  mutable base::small_mutex mutex_;
  std::unordered_map<subscription_key, std::shared_ptr<subscription>, subscription_key_hash> all_;
  base::intrusive_list<subscription, &subscription::link> order_;
  std::shared_ptr<const list> snapshot_;
  std::uint64_t added_ = 0;
  topic_counts done_;
};

}  // namespace kit

}  // namespace troupe
