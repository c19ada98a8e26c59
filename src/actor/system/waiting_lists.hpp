// waiting_lists: lists in which a thread finds actors with suspended turns while the program runs.
//
// A suspended turn is not listed here while its actor's deactivation is deferred on a worker: such
// actors are found on the worker (sched::executor::for_each_quiet), and most suspensions end there,
// without any cost here. When an actor is parked for the first time in an async call, the call is
// listed until it is done. A reentrant actor is listed from its first suspended call on. A thread
// that looks at a listed actor takes it over for an instant
// (docs/protocols/suspended_turns.md#being-looked-at). The activation of a listed call's actor is
// kept in the link of the call's message, which is in no list while the call runs: a thread can
// therefore hold the actor without walking through its mail. The activation stays the same for as
// long as the call is listed.
// Invariants
//   S1  an async call for which an actor is parked is listed, and so is a reentrant actor with
//       suspended calls.
//   S2  a listed call does not go while its list is locked, nor while a thread holds its actor:
//       only the actor's owner removes it. The actor's slot is therefore in use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "actor/state/optional_state.hpp"
#include "base/atomics.hpp"
#include "base/walks/watched_list.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/task/async_call.hpp"

namespace troupe::actor {

struct activation;

// One for each runtime. Threads: any; only the actor's owner adds and removes.
class waiting_lists {
 public:
  // The actor, which has this activation, is about to be parked. Uses the call's links, which
  // otherwise only calls of reentrant actors need.
  void add(tasks::async_call& parked, activation& active) noexcept;
  // For a listed call.
  static activation& activation_of(const tasks::async_call& listed) noexcept;
  void remove(tasks::async_call& done) noexcept;
  // For an actor with optional state.
  void add(cell& reentrant) noexcept;
  void remove(cell& reentrant) noexcept;

  // Each call gets the lock of its list, which keeps the object there (S2): `look` may unlock it
  // once it holds the actor. `look` must not call this object. One thread at a time. While a lock
  // is held, the walk visits at most watched_list::piece_max objects: no thread that adds or
  // removes waits for the whole walk.
  using list_lock = std::unique_lock<std::mutex>;
  void for_each_call(const std::function<void(tasks::async_call&, list_lock&)>& look);
  void for_each_reentrant(const std::function<void(cell&, list_lock&)>& look);

 private:
  struct alignas(base::line_bytes) shard {
    base::watched_list<tasks::async_call, &tasks::async_call::link> calls;
  };
  static constexpr std::size_t shards = 16;
  shard& of(const tasks::async_call& call) noexcept {
    return shards_[(reinterpret_cast<std::uintptr_t>(&call) >> 8) % shards];
  }

  std::array<shard, shards> shards_;
  static base::list_link<cell>& link_of(cell& reentrant) noexcept {
    return optional_state::of(reentrant).listed_link;
  }
  base::watched_list<cell, &waiting_lists::link_of> reentrants_;
};

}  // namespace troupe::actor
