// topic: what is published goes to all actors that subscribe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/actor/method.hpp"
#include "troupe/actor/ref.hpp"
#include "troupe/actor/sendable.hpp"
#include "troupe/base/error.hpp"
#include "troupe/base/small_mutex.hpp"
#include "troupe/kit/actors/end_watch.hpp"

namespace troupe {

// What a topic has, and what it has done since the beginning.
struct topic_counts {
  std::size_t subscribers = 0;
  std::uint64_t published = 0;
  std::uint64_t told = 0;    // messages that were sent to subscribers
  std::uint64_t missed = 0;  // those that a full mailbox refused
};

namespace kit {

// Its address identifies the method.
template <auto Method>
inline constexpr char method_tag = 0;

template <class T>
class topic_state {
 public:
  // A method of an actor.
  struct subscriber {
    // Tells the method; throws mailbox_full.
    std::function<void(const T&)> tell;
    std::size_t actor = 0;  // identifies it: the subscriber keeps the actor alive
    const char* method = nullptr;
    std::uint64_t number = 0;
    std::shared_ptr<end_watch> watch;
  };
  using list = std::vector<std::shared_ptr<subscriber>>;

  static bool add(const std::shared_ptr<topic_state>& self, std::shared_ptr<subscriber> one,
                  future<ended> ends) {
    {
      const std::lock_guard lock(self->mutex_);
      for (const auto& each : *self->all_) {
        if (each->actor == one->actor && each->method == one->method) return false;
      }
      one->number = ++self->added_;
      auto more = std::make_shared<list>(*self->all_);
      more->push_back(one);
      self->all_ = std::move(more);
    }
    // Without the mutex: the actor may have ended, and is removed at once then.
    auto watch = end_watch::start(std::move(ends), [of = std::weak_ptr(self), who = one->number] {
      if (const auto topic = of.lock())
        topic->remove_if([who](const subscriber& each) { return each.number == who; });
    });
    const std::lock_guard lock(self->mutex_);
    one->watch = std::move(watch);
    return true;
  }
  // Returns how many it removed.
  template <class Predicate>
  std::size_t remove_if(Predicate goes) {
    list gone;  // dropped without the mutex
    {
      const std::lock_guard lock(mutex_);
      auto kept = std::make_shared<list>();
      for (const auto& each : *all_) (goes(*each) ? gone : *kept).push_back(each);
      if (!gone.empty()) all_ = std::move(kept);
    }
    for (const auto& each : gone) cancel_watch(*each);
    return gone.size();
  }
  std::size_t publish(const T& value) {
    std::shared_ptr<const list> to;
    {
      const std::lock_guard lock(mutex_);
      ++done_.published;
      to = all_;
    }
    std::size_t told = 0;
    for (const auto& each : *to) {
      try {
        each->tell(value);
        ++told;
      } catch (const mailbox_full&) {
        // the bound of its mailbox says what a slow subscriber misses
      }
    }
    const std::lock_guard lock(mutex_);
    done_.told += told;
    done_.missed += to->size() - told;
    return told;
  }
  topic_counts counts() const {
    const std::lock_guard lock(mutex_);
    topic_counts seen = done_;
    seen.subscribers = all_->size();
    return seen;
  }

 private:
  void cancel_watch(subscriber& of) {
    std::shared_ptr<end_watch> watch;
    {
      const std::lock_guard lock(mutex_);
      watch = std::move(of.watch);
    }
    if (watch != nullptr) watch->cancel();
  }

  mutable base::small_mutex mutex_;
  std::shared_ptr<const list> all_ = std::make_shared<list>();  // replaced, never changed
  std::uint64_t added_ = 0;
  topic_counts done_;
};

}  // namespace kit

// Tells each value that is published to all subscribers: methods of actors, which take a T. A
// subscriber gets what is published after it subscribed, and what one party publishes in order. An
// actor that ends is unsubscribed. Copies refer to the same topic.
//
// A slow subscriber: its mailbox grows, unless the actor was spawned with a bound. Then its policy
// says what it misses: with when_full::drop_old the oldest values, with drop_new, fail and suspend
// the newest ones; publish() never waits. Other subscribers notice nothing.
//
// Thread: any. Cost: 10 ns, and for each subscriber that of a tell() and of a copy of the value:
// use a std::shared_ptr<const T> for large ones. Errors: usage_error for a ref of no actor.
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
  using state = kit::topic_state<T>;

 public:
  topic() : state_(std::make_shared<state>()) {}

  // From now on the actor is told. Returns false if that method of the actor subscribes already.
  template <auto Method, class Actor>
  bool subscribe(const ref<Actor>& one) const {
    if (!one) throw usage_error("troupe: topic: the ref refers to no actor");
    auto made = std::make_shared<typename state::subscriber>();
    made->tell = [one](const T& value) { one.template tell<Method>(value); };
    made->actor = one.hash();
    made->method = &kit::method_tag<Method>;
    return state::add(state_, std::move(made), one.watch());
  }
  template <detail::several_methods Methods, class Actor>
  bool subscribe(const ref<Actor>&) const = delete;

  // Values that were published before reach the actor still. Returns whether it subscribed.
  template <auto Method, class Actor>
  bool unsubscribe(const ref<Actor>& one) const {
    const std::size_t actor = one.hash();
    return state_->remove_if([actor](const auto& each) {
      return each.actor == actor && each.method == &kit::method_tag<Method>;
    }) != 0;
  }

  // Returns how many subscribers were told.
  std::size_t publish(const T& value) const { return state_->publish(value); }

  topic_counts counts() const { return state_->counts(); }

 private:
  std::shared_ptr<state> state_;
};

template <class T>
struct is_sendable<topic<T>> : std::true_type {};

}  // namespace troupe
