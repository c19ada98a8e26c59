// waiting: where actors whose turns are suspended are found while the program runs.
//
// Suspending costs nothing here for as long as the actor defers its deactivation on a worker: those
// are found there (sched::executor::for_each_quiet). One that is parked for the first time in an
// async call is listed by that async call, until the async call is done; a reentrant actor from its
// first suspended call on. Whoever looks takes the actor over for an instant
// (docs/protocols/suspended_turns.md#being-looked-at). The activation of a listed async call's
// actor is kept in the link of the async call's call, which is in no list while it runs: so the
// actor is held without a walk through its mail. It is the same for as long as the async call is
// listed. Invariants
//   S1  an async call for which an actor is parked is listed, and so is a reentrant actor with
//   suspended calls. S2  what is listed does not go while its list is locked: its actor's slot is
//   in use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>

#include "base/atomics.hpp"
#include "troupe/actor/cell.hpp"
#include "troupe/task/async_call.hpp"

namespace troupe::actor {

struct activation;

// Of one runtime. Threads: any; the actor's owner adds and removes.
class waiting_lists {
 public:
  // Its actor, which has this activation, is about to be parked. Uses the async call's links, which
  // only those of reentrant actors need otherwise.
  void add(tasks::async_call& parked, activation& active) noexcept;
  // Of a listed one.
  static activation& activation_of(const tasks::async_call& listed) noexcept;
  void remove(tasks::async_call& done) noexcept;
  // An actor with extras.
  void add(cell& reentrant) noexcept;
  void remove(cell& reentrant) noexcept;

  // `look` must not come back here. None of them goes meanwhile (S2).
  void for_each_call(const std::function<void(tasks::async_call&)>& look);
  void for_each_reentrant(const std::function<void(cell&)>& look);

 private:
  struct alignas(base::line_bytes) shard {
    std::mutex mutex;
    tasks::async_call* first = nullptr;
  };
  static constexpr std::size_t shards = 16;
  shard& of(const tasks::async_call& one) noexcept {
    return shards_[(reinterpret_cast<std::uintptr_t>(&one) >> 8) % shards];
  }

  std::array<shard, shards> shards_;
  std::mutex reentrants_mutex_;
  cell* reentrants_ = nullptr;
};

}  // namespace troupe::actor
