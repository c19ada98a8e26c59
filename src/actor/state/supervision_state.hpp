// supervision_state: an actor's error policy, the way to construct it again, and its parent.
#pragma once

#include <cstdint>

#include "actor/state/kept_failure.hpp"
#include "troupe/actor/supervision.hpp"
#include "troupe/base/intrusive_list.hpp"
#include "troupe/base/unique_function.hpp"

namespace troupe::actor {

// For an actor that has an error policy or a parent; lies in its optional state. Only the actor's
// owner uses it, except for the members that supervision_table's mutex guards.
struct supervision_state {
  error_policy on_error = error_policy::resume;
  restart_limit restart{};
  unique_function<void(void*)> make;
  std::int64_t failed_since_ns = 0;  // start of the period in which `failures` are counted
  unsigned failures = 0;
  bool applies_error_policy = false;  // its calls are being cancelled because of a failure
  bool escalated = false;             // its parent has received its failure
  // the failure that is applied when the calls have ended that could not be cancelled at once
  kept_failure failure_after_calls;
  // cell::cancels or 0: the value of that flag once the actor is constructed anew after those calls
  std::uint8_t cancels_then = 0;
  cell* parent = nullptr;  // holds a ref
  // Guarded by supervision_table's mutex. `listed`: among its parent's children (S1 there).
  enum class membership : std::uint8_t { none, listed, left, ended };
  membership in_parent = membership::none;
  base::list_link<cell> sibling_link;  // of the same parent, in the order in which they joined
};

}  // namespace troupe::actor
