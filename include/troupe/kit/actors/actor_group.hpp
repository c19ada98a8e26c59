// actor_group: several actors of a class that share the work: a router over actors.
#pragma once

#include "troupe/base/language.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "troupe/actor/call.hpp"
#include "troupe/actor/method.hpp"
#include "troupe/actor/ref.hpp"
#include "troupe/base/error.hpp"
#include "troupe/base/intrusive_list.hpp"
#include "troupe/base/small_mutex.hpp"
#include "troupe/kit/actors/end_watch.hpp"
#include "troupe/kit/actors/group_core.hpp"

namespace troupe {

namespace kit {

// A call that counts as work of a member until it is done.
template <class T, class Call>
struct counted_call {
  template <class... Args>
  explicit counted_call(load_token&& counted, Args&&... args)
      : token(std::move(counted)), call(std::in_place, std::forward<Args>(args)...) {}
  decltype(auto) operator()(T& object) { return call(object); }
  load_token token;
  Call call;
};

// The members, which all know how many messages of the group are before them.
// Invariants, all under the mutex
//   G1  a member is in `all_`, in `order_` and in `places_`, or in none of them. Its `place` is its
//       index in `places_`.
//   G2  no user code runs under the mutex, destructors included: a member that leaves is dropped
//       without it.
// A change costs the same with any number of members. `order_` has them in the order in which they
// were added; in `places_` the last member takes the place of a member that leaves.
template <class T>
class group_state {
 public:
  struct chosen {
    ref<T> recipient;
    std::optional<load_token> token;  // where the load counts
  };

  explicit group_state(group_choice by) noexcept : choice_(by) {}

  static bool add(const std::shared_ptr<group_state>& self, const ref<T>& actor_ref) {
    if (!actor_ref)
      throw usage_error(
          "troupe: actor_group: the ref refers to no actor; add the result of spawn()");
    const void* const actor = ref_access::cell_of(actor_ref);
    const std::uint64_t number = self->insert(actor, actor_ref);
    if (number == 0) return false;
    std::shared_ptr<end_watch> watch;
    try {
      // Without the mutex: the actor may have ended, and is removed at once then.
      watch = end_watch::start(actor_ref.watch(), [state = std::weak_ptr(self), actor, number] {
        if (const auto group = state.lock()) group->remove(actor, number);
      });
    } catch (...) {
      self->remove(actor, number);
      throw;
    }
    const std::lock_guard lock(self->mutex_);
    const auto at = self->all_.find(actor);
    if (at != self->all_.end() && at->second.number == number) at->second.watch = std::move(watch);
    return true;
  }
  bool remove(const ref<T>& actor) { return remove(ref_access::cell_of(actor), 0); }

  chosen choose() {
    const std::lock_guard lock(mutex_);
    if (places_.empty()) refuse_empty_group();
    const std::size_t count = places_.size();
    if (choice_ == group_choice::random)
      return {places_[random_below(count)].owner->recipient, std::nullopt};
    const std::size_t next = next_++ % count;
    if (choice_ == group_choice::round_robin) return {places_[next].owner->recipient, std::nullopt};
    // From the next one on, so that idle members take turns.
    const place* best = &places_[next];
    for (std::size_t i = 1; i < count; ++i) {
      const place& other = places_[(next + i) % count];
      if (load_of(other) < load_of(*best)) best = &other;
    }
    return {best->owner->recipient, load_token(best->owner->load)};
  }
  // The best of all: if members are added or removed, only their keys get another member. (A ring
  // of hashes finds it in fewer steps, but spreads the keys worse and takes long to change.)
  ref<T> of_hash(std::uint64_t key) {
    const std::lock_guard lock(mutex_);
    if (places_.empty()) refuse_empty_group();
    const place* best = nullptr;
    std::uint64_t best_fitness = 0;
    for (const place& other : places_) {
      const std::uint64_t fits = fitness(key, other.id);
      if (best != nullptr && fits <= best_fitness) continue;
      best = &other;
      best_fitness = fits;
    }
    return best->owner->recipient;
  }
  std::vector<ref<T>> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<ref<T>> found;
    found.reserve(places_.size());
    for (const member& listed : order_) found.push_back(listed.recipient);
    return found;
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return places_.size();
  }

 private:
  struct member {
    explicit member(const ref<T>& actor)
        : recipient(actor), load(std::make_shared<load_count>(0)) {}
    const ref<T> recipient;
    const std::shared_ptr<load_count> load;
    std::uint64_t number = 0;  // differs from the number of a later membership of the same actor
    std::size_t place = 0;
    std::shared_ptr<end_watch> watch;
    base::list_link<member> link;
  };
  // The data that choose() and of_hash() read, without access to the member.
  struct place {
    member* owner;
    const load_count* load;
    std::uint64_t id;
  };

  static std::size_t load_of(const place& member_place) noexcept {
    // order: relaxed  a hint
    return member_place.load->load(std::memory_order_relaxed);
  }
  // Returns the number of the membership; 0 if the actor is a member already.
  std::uint64_t insert(const void* actor, const ref<T>& actor_ref) {
    const std::lock_guard lock(mutex_);
    if (places_.size() == places_.capacity()) places_.reserve(2 * places_.size() + 4);
    const auto [at, is_new] = all_.try_emplace(actor, actor_ref);
    if (!is_new) return 0;
    member& added = at->second;
    added.place = places_.size();
    places_.push_back({&added, added.load.get(), actor_ref.id()});
    order_.push_back(added);
    check_group(all_.size(), places_.size(), places_.back().owner == &added);
    return added.number = ++added_;
  }
  // With number 0: whichever membership the actor has. Returns false if it has none.
  bool remove(const void* actor, std::uint64_t number) {
    typename decltype(all_)::node_type gone;  // dropped without the mutex (G2)
    {
      const std::lock_guard lock(mutex_);
      const auto at = all_.find(actor);
      if (at == all_.end() || (number != 0 && at->second.number != number)) return false;
      const std::size_t freed = at->second.place;
      check_group(all_.size(), places_.size(), places_[freed].owner == &at->second);
      places_[freed] = places_.back();
      places_[freed].owner->place = freed;
      places_.pop_back();
      order_.remove(at->second);
      gone = all_.extract(at);
    }
    if (gone.mapped().watch != nullptr) gone.mapped().watch->cancel();
    return true;
  }

  const group_choice choice_;
  mutable base::small_mutex mutex_;
  std::unordered_map<const void*, member> all_;  // by the actor, which the member keeps alive
  base::intrusive_list<member, &member::link> order_;
  std::vector<place> places_;
  std::uint64_t added_ = 0;
  std::size_t next_ = 0;
};

}  // namespace kit

// Actors that do the same work; messages to the group go to one of them, or to all. Members may be
// added and removed while messages are sent; one that ends is removed. Copies refer to the same
// group.
//
// Thread: any. Cost: 12 ns more than a message to an actor; with least_loaded 20 ns, and 3 ns for
// each member. Errors: group_empty, and the errors of ref::tell and ref::ask. Lifetime: the group
// keeps its members alive, as a ref does, until they are removed or stopped.
// Limits: least_loaded counts only messages that were sent through this group: it does not see
// messages that a member gets by its ref or from another group; send all work through one group. A
// message to a member that ends just now is a dead letter.
//
// Example:
//     struct Worker {
//       int work(int n) { return n * n; }
//       void stop_soon() {}
//     };
//     troupe::task<> use(troupe::actor_group<Worker> workers) {
//       for (int i = 0; i < 8; ++i) std::cout << co_await workers.ask<&Worker::work>(i) << ' ';
//       const troupe::ref<Worker> one = workers.of(std::string("Ada"));  // always the same
//       std::cout << co_await one.ask<&Worker::work>(9) << '\n';
//       workers.tell_all<&Worker::stop_soon>();
//     }
//     int main() {
//       troupe::runtime rt;
//       troupe::actor_group<Worker> workers;
//       for (int i = 0; i < 4; ++i) workers.add(rt.spawn<Worker>());
//       rt.spawn(use(workers));
//       rt.run();
//     }
template <class T>
class actor_group {
  using state = kit::group_state<T>;

 public:
  explicit actor_group(group_choice choice = group_choice::round_robin)
      : state_(std::make_shared<state>(choice)) {}

  // Returns false if it is a member already. Throws usage_error if the ref refers to no actor.
  bool add(const ref<T>& member) const { return state::add(state_, member); }
  // Messages that were sent to it before reach it. Returns false if it is no member.
  bool remove(const ref<T>& member) const { return state_->remove(member); }
  std::size_t size() const { return state_->size(); }
  std::vector<ref<T>> members() const { return state_->all(); }

  // The member that is next, as for a message.
  ref<T> next() const { return state_->choose().recipient; }
  // The member for a key: the same one for equal keys, as long as it is a member. When another one
  // is added or removed, only the keys that it gets, or had, change their member (rendezvous
  // hashing). Cost: 10 ns, and 5 ns for each member.
  // The number of an actor decides, not when it was added: groups of the same members agree.
  template <class Key>
  ref<T> of(const Key& key) const {
    if constexpr (std::is_convertible_v<const Key&, std::string_view>) {
      return state_->of_hash(std::hash<std::string_view>{}(key));
    } else {
      static_assert(std::is_default_constructible_v<std::hash<Key>>,
                    "troupe: actor_group::of: there is no std::hash of the key's type; give a key "
                    "of a type with a std::hash, or specialize it");
      return state_->of_hash(std::hash<Key>{}(key));
    }
  }

  // As ref::tell, to one of the members.
  template <auto Method, class... Args>
  void tell(Args&&... args) const {
    auto chosen = state_->choose();
    if constexpr (fits<Method, Args...>) {
      if (chosen.token.has_value())
        return chosen.recipient.tell(counted<Method>(*chosen.token, std::forward<Args>(args)...));
    }
    chosen.recipient.template tell<Method>(std::forward<Args>(args)...);
  }
  template <detail::several_methods Methods, class... Args>
  void tell(Args&&...) const = delete;
  template <class Callable>
  void tell(Callable&& callable) const {
    auto chosen = state_->choose();
    if (chosen.token.has_value())
      return chosen.recipient.tell(
          counted_callable(*chosen.token, std::forward<Callable>(callable)));
    chosen.recipient.tell(std::forward<Callable>(callable));
  }

  // As ref::ask, of one of the members.
  template <auto Method, class... Args>
  [[nodiscard]] auto ask(Args&&... args) const {
    auto chosen = state_->choose();
    if constexpr (fits<Method, Args...>) {
      if (chosen.token.has_value())
        return chosen.recipient.ask(counted<Method>(*chosen.token, std::forward<Args>(args)...));
    }
    return chosen.recipient.template ask<Method>(std::forward<Args>(args)...);
  }
  template <detail::several_methods Methods, class... Args>
  void ask(Args&&...) const = delete;
  template <class Callable>
  [[nodiscard]] auto ask(Callable&& callable) const {
    auto chosen = state_->choose();
    if (chosen.token.has_value())
      return chosen.recipient.ask(
          counted_callable(*chosen.token, std::forward<Callable>(callable)));
    return chosen.recipient.ask(std::forward<Callable>(callable));
  }

  // Sends each member a tell with its own copy of the arguments. Returns how many accepted the
  // message: a member whose mailbox is full may refuse it. An empty group is no error.
  template <auto Method, class... Args>
  std::size_t tell_all(const Args&... args) const {
    std::size_t told = 0;
    for (const ref<T>& member : state_->all()) {
      try {
        member.template tell<Method>(args...);
        ++told;
      } catch (const mailbox_full&) {
        // the bound of the mailbox is the member's own choice
      }
    }
    return told;
  }
  // Asks each member. Returns the futures, for when_all, in the order in which the members were
  // added. An empty group is no error.
  template <auto Method, class... Args>
  [[nodiscard]] auto ask_all(const Args&... args) const {
    std::vector<decltype(std::declval<const ref<T>&>().template ask<Method>(args...))> later;
    const std::vector<ref<T>> all = state_->all();
    later.reserve(all.size());
    for (const ref<T>& member : all) later.push_back(member.template ask<Method>(args...));
    return later;
  }

 private:
  template <auto Method, class... Args>
  static constexpr bool fits =
      detail::misfit_of_call<T, decltype(Method), Args...>() == detail::misfit::none;
  template <auto Method, class... Args>
  static auto counted(kit::load_token& token, Args&&... args) {
    using call = typename detail::method_traits<decltype(Method)>::template call<T, Method>;
    return kit::counted_call<T, call>(std::move(token), std::forward<Args>(args)...);
  }
  template <class Callable>
  static auto counted_callable(kit::load_token& token, Callable&& callable) {
    using call = actor::callable_call<T, std::decay_t<Callable>>;
    return kit::counted_call<T, call>(std::move(token), std::forward<Callable>(callable));
  }

  std::shared_ptr<state> state_;
};

template <class T, class Call>
struct is_sendable<kit::counted_call<T, Call>> : std::true_type {};
template <class T>
struct is_sendable<actor_group<T>> : std::true_type {};

}  // namespace troupe
