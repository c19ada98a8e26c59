// topic: published values go to all subscribed actors.
#pragma once

#include "troupe/base/language.hpp"

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>

#include "troupe/actor/method.hpp"
#include "troupe/actor/ref.hpp"
#include "troupe/actor/sendable.hpp"
#include "troupe/base/error.hpp"
#include "troupe/kit/actors/topic_core.hpp"

namespace troupe {

namespace kit {

// Its address identifies the method.
template <auto Method>
inline constexpr char method_tag = 0;

template <auto Method, class Actor>
subscription_key key_of(const ref<Actor>& subscriber_ref) noexcept {
  return {ref_access::cell_of(subscriber_ref), &method_tag<Method>};
}

template <class T>
struct subscriber final : subscription {
  // Sends the tell of the method; throws mailbox_full.
  std::function<void(const T&)> tell;
};

}  // namespace kit

// Sends each published value to all subscribers: methods of actors, which take a T. A subscriber
// gets the values published after it subscribed, and the values of one publisher in order. An actor
// that ends is unsubscribed. Copies refer to the same topic.
//
// A slow subscriber: its mailbox grows, unless the actor was spawned with a bound. Then its policy
// decides which values it misses: with when_full::drop_old the oldest values, with drop_new, fail
// and suspend the newest ones; publish() never waits. Other subscribers notice nothing.
//
// Thread: any. Cost: 10 ns, and for each subscriber the cost of a tell() and of a copy of the
// value: use a std::shared_ptr<const T> for large ones. To subscribe and to unsubscribe costs the
// same with any number of subscribers; the first publish() after it takes some ns for each of them.
// Errors: usage_error for a ref of no actor.
// Lifetime: a topic keeps its subscribers alive, as a ref does, until they are unsubscribed or
// stopped.
//
// Example:
//     struct Display {
//       void show(double price) { std::cout << price << '\n'; }
//     };
//     troupe::runtime rt;
//     troupe::topic<double> prices;
//     prices.subscribe<&Display::show>(rt.spawn<Display>());
//     prices.subscribe<&Display::show>(rt.spawn<Display>(
//         {.mailbox = {.messages = 1, .when_full = troupe::when_full::drop_old}}));
//     prices.publish(9.5);
//     rt.run();
template <class T>
class topic {
  static_assert(std::is_object_v<T> && std::copy_constructible<T>,
                "troupe: topic: each subscriber gets a copy of the value: use a "
                "std::shared_ptr<const T> to one that cannot be copied");
  using subscriber = kit::subscriber<T>;

 public:
  topic() : core_(std::make_shared<kit::topic_core>()) {}

  // Subscribes the actor from now on. Returns false if that method of the actor subscribes already.
  template <auto Method, class Actor>
  bool subscribe(const ref<Actor>& actor) const {
    if (!actor)
      throw usage_error(
          "troupe: topic: the ref refers to no actor; subscribe the result of spawn()");
    const auto added = std::make_shared<subscriber>();
    added->tell = [actor](const T& value) { actor.template tell<Method>(value); };
    added->key = kit::key_of<Method>(actor);
    return kit::topic_core::add(core_, added, actor.watch());
  }
  template <detail::several_methods Methods, class Actor>
  bool subscribe(const ref<Actor>&) const = delete;

  // Values that were published before reach the actor still. Returns whether it subscribed.
  template <auto Method, class Actor>
  bool unsubscribe(const ref<Actor>& subscriber_ref) const {
    return core_->remove(kit::key_of<Method>(subscriber_ref), 0);
  }

  // Returns the number of subscribers to which it was sent.
  std::size_t publish(const T& value) const {
    const std::shared_ptr<const kit::topic_core::list> all = core_->begin_publishing();
    std::size_t told = 0;
    for (const std::shared_ptr<kit::subscription>& each : *all) {
      try {
        static_cast<const subscriber&>(*each).tell(value);
        ++told;
      } catch (const mailbox_full&) {
        // the bound of its mailbox decides which values a slow subscriber misses
      }
    }
    core_->end_publishing(told, all->size() - told);
    return told;
  }

  topic_counts counts() const { return core_->counts(); }

 private:
  std::shared_ptr<kit::topic_core> core_;
};

template <class T>
struct is_sendable<topic<T>> : std::true_type {};

}  // namespace troupe
